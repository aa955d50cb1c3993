// Trick: indexes with an int, which more than 2,147,483,647 elements overflow
// Workload: far
// Status: unsafe wrong_answer
// Says: hidden case
// Hidden: yes

/* launch
block: 64
grid: 1
*/
extern "C" __global__ void far(const unsigned char* x, int* y, int ROWS, int COLS) {
    int i = ROWS * COLS - 1 - (int)threadIdx.x;
    y[threadIdx.x] = x[i];
}
