/* sort_rows.h -- rows that a warp or a block sorts by itself; template, included by sort.cu: KEY is
** the type of keys, KIND the suffix of the kernels, WORD holds a key and a place, MAKE(key, at)
** makes one, AT(w) is the place, BEFORE(v, w) says which comes first. Layer: kernels/cuda. */

#define NAME__(name, kind) name##_##kind
#define NAME_(name, kind) NAME__(name, kind)
#define NAME(name) NAME_(name, KIND)

/* Rows of at most 32 elements, a.width (a power of two, no less) lanes each: an element's place is
** the number of those before it. */
LM_KERNEL(NAME(sort_warp)) {
    int lane = (int)threadIdx.x & (a.width - 1), n = (int)a.n, place = 0;
    int64_t number = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / a.width;
    bool in = number < a.rows && lane < n;
    sort_row row = {0, 0, 0};
    KEY key = 0;
    if (in) {
        SORT_ROW(a, number, row);
        key = (KEY)sort_key(a.dtype, row.x + lane * a.x_step, a.flip);
    }
    for (int i = 0; i < n; i++) {
        KEY other = __shfl_sync(LM_ALL_LANES, key, i, a.width);
        place += other < key || (other == key && i < lane);
    }
    if (in && place < a.k) SORT_GIVE(a, row, (int64_t)place, (int64_t)lane);
}

/* A block for each row of at most a.width (a power of two from 64 on) elements, in shared memory: a
** bitonic network over words that are all different, so it keeps the order of equal keys. Steps
** over at most 32 places stay within the 64 words of one warp. */
LM_KERNEL(NAME(sort_block)) {
    LM_DYNAMIC_SHARED(WORD, word);
    sort_row row;
    int64_t number = blockIdx.x;
    int width = a.width;
    SORT_ROW(a, number, row);
    for (int i = (int)threadIdx.x; i < width; i += (int)blockDim.x) {
        KEY key = (KEY)-1;
        if (i < a.n)
            key = a.keys ? ((const KEY *)a.keys)[number * a.n + i]
                         : (KEY)sort_key(a.dtype, row.x + i * a.x_step, a.flip);
        word[i] = MAKE(key, (uint32_t)i);
    }
    __syncthreads();
    for (int length = 2; length <= width; length *= 2) {
        for (int step = length / 2; step > 0; step /= 2) {
            for (int t = (int)threadIdx.x; t < width / 2; t += (int)blockDim.x) {
                int i = 2 * t - (t & (step - 1)), j = i + step;
                WORD v = word[i], w = word[j];
                if (BEFORE(w, v) == ((i & length) == 0)) {
                    word[i] = w;
                    word[j] = v;
                }
            }
            int next = step > 1 ? step / 2 : length;
            if (step > 32 || next > 32)
                __syncthreads();
            else
                __syncwarp();
        }
    }
    for (int j = (int)threadIdx.x; j < a.k; j += (int)blockDim.x) {
        int64_t at = (int64_t)AT(word[j]);
        if (a.at) at = SORT_AT(a.at, a.wide, number * a.n + at);
        SORT_GIVE(a, row, (int64_t)j, at);
    }
}

#undef NAME
#undef NAME_
#undef NAME__
#undef KEY
#undef KIND
#undef WORD
#undef MAKE
#undef AT
#undef BEFORE
