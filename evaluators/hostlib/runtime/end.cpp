// Linked behind the candidate's object: marks where its writable variables end.
extern "C" {
extern char cuda_host_data_end[], cuda_host_bss_end[];
alignas(64) char cuda_host_data_end[64] = {1};
alignas(64) char cuda_host_bss_end[64] = {};
}
