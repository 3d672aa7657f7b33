# What is installed, and the archive that cpack makes of it. Everything finds the rest relative to
# where it lies itself.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(headers ${CMAKE_INSTALL_INCLUDEDIR}/luma)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/luma)
set(generated ${CMAKE_BINARY_DIR}/install)

add_custom_command(
  OUTPUT ${generated}/luma.h
  COMMAND ${CMAKE_COMMAND} -DCORE=${CMAKE_SOURCE_DIR}/core -DOUTPUT=${generated}/luma.h
          -P ${CMAKE_SOURCE_DIR}/scripts/cmake/header.cmake
  DEPENDS core/luma.h core/luma_base.h core/luma_ops.h core/ops.def scripts/cmake/header.cmake
  VERBATIM)
add_custom_target(luma_header ALL DEPENDS ${generated}/luma.h)
install(FILES ${generated}/luma.h bindings/luma_lua.h DESTINATION ${headers})

# luma::luma and luma::static are the C API, luma::lua has an interpreter in it.
foreach(target luma_shared luma_static luma_lua)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${headers}>)
endforeach()
install(TARGETS luma RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS luma_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lua/5.4)
install(TARGETS luma_shared luma_static luma_lua EXPORT luma
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT luma NAMESPACE luma:: FILE lumaTargets.cmake DESTINATION ${package})
configure_package_config_file(scripts/cmake/lumaConfig.cmake.in ${generated}/lumaConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${generated}/lumaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/lumaConfig.cmake ${generated}/lumaConfigVersion.cmake
  DESTINATION ${package})

# pkg-config: luma, luma-lua
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(system "")
foreach(library IN LISTS LUMA_SYSTEM_LIBRARIES)
  string(APPEND system " -l${library}")
endforeach()
set(interpreter "")
if(NOT LUA54_LIBRARY MATCHES "\\.a$")
  set(interpreter " ${LUA54_LIBRARY}")
endif()
foreach(name luma luma-lua)
  configure_file(scripts/cmake/${name}.pc.in ${generated}/${name}.pc @ONLY)
  install(FILES ${generated}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(FILES README.md MANUAL.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME luma-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
