// Linked before the candidate's object: marks where its writable variables begin.
extern "C" {
extern char cuda_host_data_begin[], cuda_host_bss_begin[];
alignas(64) char cuda_host_data_begin[64] = {1};
alignas(64) char cuda_host_bss_begin[64] = {};
}
