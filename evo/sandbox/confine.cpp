// confine: walks one foreign program into a sandbox, then becomes that program.
//
// Every wall is raised here, in a process that still runs only our code, and each outlives exec: resource limits,
// no_new_privs, dropped capabilities, a Landlock domain (files) and a seccomp filter (system calls). The foreign
// program therefore has no first instruction outside of the sandbox. Built once by `evo/sandbox/launcher.py`.
//
// usage: confine --probe
//        confine MODE PARENT ERROR_FD CPU_S AS_BYTES DATA_BYTES FILE_BYTES CORE FOLDER N READ_ONLY*N PROGRAM ARGV...
//
// MODE `program` may execute PROGRAM once and nothing else; MODE `script` is the same for an interpreter, which lists the
// folders that it may read and is told when it may have no more memory; MODE `tools` may start programs of the system's
// folders.
// What goes wrong before the foreign program starts is written to ERROR_FD, which exec closes.

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows the system calls of x86-64 and AArch64 only"
#endif

namespace {

int error_fd = STDERR_FILENO;

[[noreturn]] void fail(const char* format, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (write(error_fd, text, length) < 0) _exit(126);
    _exit(125);
}

// --- Landlock: which files -----------------------------------------------------------------------------------------
// Numbers of the kernel's ABI (Documentation/userspace-api/landlock.rst), spelt out because the headers of older
// distributions lack the later ones.

constexpr long CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446;
constexpr uint64_t EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_FILE = 1 << 5,
                   MAKE_DIR = 1 << 7, MAKE_REG = 1 << 8, REMOVE_DIR = 1 << 4, TRUNCATE = 1 << 14;
constexpr uint64_t FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

struct Ruleset {
    uint64_t files, network, scoped;
};
struct __attribute__((packed)) Rule {
    uint64_t allowed;
    int32_t parent;
};

int landlock_abi() { return syscall(CREATE_RULESET, nullptr, 0, 1); }

// All file rights that this ABI knows: what no rule grants is then refused. 13 rights in ABI 1, +refer, +truncate,
// +ioctl of devices.
uint64_t all_rights(int abi) { return (1ull << (abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13)) - 1; }

class Landlock {
  public:
    explicit Landlock(int abi) : rights_(all_rights(abi)) {
        // TCP ports from ABI 4; signals and abstract sockets beyond the sandbox from ABI 6.
        Ruleset ruleset{rights_, abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
        size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
        fd_ = syscall(CREATE_RULESET, &ruleset, size, 0);
        if (fd_ < 0) fail("cannot create a Landlock rule set: %s", strerror(errno));
    }
    // A folder of the system that this distribution lacks is not an error.
    void allow_if_there(const char* path, uint64_t rights) {
        int at = open(path, O_PATH | O_CLOEXEC);
        if (at < 0) return;
        grant(path, at, rights);
    }
    void allow(const char* path, uint64_t rights) {
        int at = open(path, O_PATH | O_CLOEXEC);
        if (at < 0) fail("cannot open %s: %s", path, strerror(errno));
        grant(path, at, rights);
    }
    void enforce() {
        if (syscall(RESTRICT_SELF, fd_, 0)) fail("cannot enforce Landlock rules: %s", strerror(errno));
        close(fd_);
    }

  private:
    void grant(const char* path, int at, uint64_t rights) {
        struct stat status;
        if (fstat(at, &status)) fail("cannot stat %s: %s", path, strerror(errno));
        if (!S_ISDIR(status.st_mode)) rights &= FILE_RIGHTS;
        Rule rule{rights & rights_, at};
        if (syscall(ADD_RULE, fd_, 1, &rule, 0)) fail("cannot allow %s: %s", path, strerror(errno));
        close(at);
    }
    uint64_t rights_;
    int fd_;
};

// The dynamic loader that an ELF program names: exec opens it like a program, so it needs the right to be executed.
// False where there is none: the program is linked statically, or a script.
bool interpreter(const char* program, char* path, size_t size) {
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("cannot open the program %s: %s", program, strerror(errno));
    Elf64_Ehdr head;
    bool found = false;
    if (read(fd, &head, sizeof head) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG)) head.e_phnum = 0;
    for (int i = 0; i < head.e_phnum && !found; ++i) {
        Elf64_Phdr part;
        if (pread(fd, &part, sizeof part, head.e_phoff + i * sizeof part) != sizeof part) break;
        if (part.p_type != PT_INTERP || part.p_filesz >= size) continue;
        found = pread(fd, path, part.p_filesz, part.p_offset) == (ssize_t)part.p_filesz;
        path[part.p_filesz] = 0;
    }
    close(fd);
    return found;
}

const char* const LIBRARIES[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"};
const char* const TOOLS[] = {"/bin", "/usr/bin", "/usr/local/bin", "/usr/libexec", "/usr/include",
                             "/usr/local/include", "/usr/x86_64-linux-gnu", "/usr/aarch64-linux-gnu"};

// --- seccomp: which system calls -----------------------------------------------------------------------------------

constexpr uint32_t ALLOW = SECCOMP_RET_ALLOW, KILL = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | error; }

class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        jump(BPF_JEQ, NATIVE_ARCH, 1, 0);
        give(KILL);
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        jump(BPF_JGE, 0x40000000, 0, 1);  // the x32 ABI: the same calls under other numbers
        give(KILL);
#endif
    }
    void always(std::initializer_list<long> calls, uint32_t verdict) {
        for (long call : calls) {
            jump(BPF_JEQ, call, 0, 1);
            give(verdict);
        }
    }
    // `body` sees the call's arguments; it must end with a verdict on every path.
    template <class Body> void when(long call, Body body) {
        jump(BPF_JEQ, call, 0, 0);
        size_t at = code_.size() - 1;
        body();
        code_[at].jf = (uint8_t)(code_.size() - 1 - at);
    }
    void give(uint32_t verdict) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict)); }
    // A verdict for calls whose argument has exactly this value.
    void equal(int argument, uint64_t value, uint32_t verdict) {
        low(argument);
        jump(BPF_JEQ, (uint32_t)value, 0, 3);
        high(argument);
        jump(BPF_JEQ, (uint32_t)(value >> 32), 0, 1);
        give(verdict);
    }
    // A verdict for calls whose argument, a C int, has exactly this value: the kernel ignores the upper half.
    void equal_int(int argument, uint32_t value, uint32_t verdict) {
        low(argument);
        jump(BPF_JEQ, value, 0, 1);
        give(verdict);
    }
    void unequal_int(int argument, uint32_t value, uint32_t verdict) {
        low(argument);
        jump(BPF_JEQ, value, 1, 0);
        give(verdict);
    }
    // A verdict for calls whose argument (its low half) has, under the mask, exactly these bits.
    void masked(int argument, uint32_t mask, uint32_t bits, uint32_t verdict) {
        low(argument);
        code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
        jump(BPF_JEQ, bits, 0, 1);
        give(verdict);
    }
    // A verdict for calls whose argument has any of these bits (low half).
    void any(int argument, uint32_t bits, uint32_t verdict) {
        low(argument);
        jump(BPF_JSET, bits, 0, 1);
        give(verdict);
    }
    // A verdict for calls whose 64-bit argument is above the limit.
    void above(int argument, uint64_t limit, uint32_t verdict) {
        high(argument);
        jump(BPF_JGT, (uint32_t)(limit >> 32), 3, 0);
        jump(BPF_JEQ, (uint32_t)(limit >> 32), 0, 3);
        low(argument);
        jump(BPF_JGT, (uint32_t)limit, 0, 1);
        give(verdict);
    }
    void enforce() {
        sock_fprog program{(unsigned short)code_.size(), code_.data()};
        // SPEC_ALLOW: kernels before 5.16 would otherwise slow the program's loads, and its latencies with them.
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program))
            fail("cannot install the seccomp filter: %s", strerror(errno));
    }

  private:
    void load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    void low(int argument) { load(offsetof(seccomp_data, args) + 8 * argument); }
    void high(int argument) { load(offsetof(seccomp_data, args) + 8 * argument + 4); }
    void jump(int condition, uint32_t value, uint8_t yes, uint8_t no) {
        code_.push_back(BPF_JUMP(BPF_JMP | condition | BPF_K, value, yes, no));
    }
    std::vector<sock_filter> code_;
};

// Memory, files that are already open, time, and the calling thread itself.
void allow_computing(Filter& filter) {
    filter.always({SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
                   SYS_lseek, SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_ftruncate, SYS_dup,
                   SYS_dup3, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex, SYS_nanosleep,
                   SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_sched_yield,
                   SYS_sched_getaffinity, SYS_getcpu, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid,
                   SYS_getegid, SYS_getrandom, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
                   SYS_sigaltstack, SYS_setitimer, SYS_getitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_delete, SYS_exit,
                   SYS_exit_group, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_uname, SYS_sysinfo,
                   SYS_getrusage, SYS_times, SYS_ppoll, SYS_restart_syscall, SYS_membarrier, SYS_fadvise64},
                  ALLOW);
#if defined(__x86_64__)
    filter.always({SYS_stat, SYS_lstat, SYS_access, SYS_dup2, SYS_poll, SYS_time, SYS_arch_prctl, SYS_getrlimit},
                  ALLOW);
#endif
}

// Only the question `is this a terminal?` is asked with ioctl; nothing here is one.
void refuse_ioctl(Filter& filter) {
    filter.always({SYS_ioctl}, refuse(ENOTTY));
}

void allow_own_process(Filter& filter, bool alone) {
    // Before ABI 3 Landlock lets a file that may be read be truncated.
    filter.when(SYS_openat, [&] {
        filter.masked(2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY, refuse(EACCES));
        filter.give(ALLOW);
    });
#if defined(__x86_64__)
    filter.when(SYS_open, [&] {
        filter.masked(1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY, refuse(EACCES));
        filter.give(ALLOW);
    });
#endif
    // F_SETOWN with O_ASYNC sends signals to any process of the user: no command that could set it.
    filter.when(SYS_fcntl, [&] {
        for (int command : {F_GETFD, F_SETFD, F_GETFL, F_DUPFD, F_DUPFD_CLOEXEC, F_GETLK, F_SETLK, F_SETLKW})
            filter.equal_int(1, command, ALLOW);
        filter.give(refuse(EPERM));
    });
    // Of process 0, which is oneself: root, or the same user, could set anybody's. GCC raises its stack's.
    filter.when(SYS_prlimit64, [&] {
        filter.unequal_int(0, 0, refuse(EPERM));
        filter.equal(2, 0, ALLOW);
        filter.give(alone ? refuse(EPERM) : ALLOW);
    });
    filter.when(SYS_tgkill, [&] {
        if (alone) filter.equal_int(0, getpid(), ALLOW);
        filter.give(alone ? KILL : refuse(EPERM));
    });
    refuse_ioctl(filter);
}

// Signs of an attack rather than of a library that probes: the process dies at once, with SIGSYS.
void kill_hostile(Filter& filter) {
    filter.always({SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto,
                   SYS_sendmsg, SYS_recvmsg, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount,
                   SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open,
                   SYS_keyctl, SYS_add_key, SYS_request_key, SYS_userfaultfd, SYS_init_module, SYS_finit_module,
                   SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_kill, SYS_tkill,
                   SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_open_by_handle_at, SYS_setuid, SYS_setgid,
                   SYS_setresuid, SYS_setresgid, SYS_setreuid, SYS_setregid, SYS_setgroups, SYS_capset,
                   SYS_settimeofday, SYS_clock_settime, SYS_sethostname, SYS_acct, SYS_quotactl, SYS_truncate,
                   424 /* pidfd_send_signal */, 434 /* pidfd_open */, 438 /* pidfd_getfd */},
                  KILL);
#if defined(__x86_64__)
    filter.always({SYS_iopl, SYS_ioperm}, KILL);
#endif
}

// Writable memory is counted by RLIMIT_DATA, except where these flags hide it.
void bound_memory(Filter& filter, uint64_t data_bytes, uint32_t verdict) {
    filter.when(SYS_mmap, [&] {
        filter.masked(3, MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS, refuse(ENOMEM));
        filter.any(3, MAP_GROWSDOWN | MAP_LOCKED, refuse(ENOMEM));
        // More than everything, at once and writable: no allocator's attempt, and in a native program errno would only
        // become a crash.
        filter.masked(2, PROT_WRITE, 0, ALLOW);
        filter.above(1, data_bytes, verdict);
        filter.give(ALLOW);
    });
    filter.always({SYS_mremap}, ALLOW);
}

void filter_program(uint64_t data_bytes, const char* key, bool script) {
    Filter filter;
    allow_computing(filter);
    allow_own_process(filter, true);
    bound_memory(filter, data_bytes, script ? refuse(ENOMEM) : KILL);
    // How an interpreter finds its modules; Landlock says in which folders.
    if (script) filter.always({SYS_getdents64, SYS_getcwd, SYS_readlinkat}, ALLOW);
#if defined(__x86_64__)
    if (script) filter.always({SYS_readlink}, ALLOW);
#endif
    // The one exec is known by the address of its path, which is random and gone once exec has succeeded.
    filter.when(SYS_execve, [&] {
        filter.equal(0, (uintptr_t)key, ALLOW);
        filter.give(KILL);
    });
    kill_hostile(filter);
    filter.always({SYS_execveat, SYS_clone}, KILL);
#if defined(__x86_64__)
    filter.always({SYS_fork, SYS_vfork}, KILL);
#endif
    filter.give(refuse(ENOSYS));
    filter.enforce();
}

void filter_tools() {
    constexpr uint32_t NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                    CLONE_NEWPID | CLONE_NEWNET;
    Filter filter;
    allow_computing(filter);
    allow_own_process(filter, false);
    filter.always({SYS_mmap, SYS_mremap, SYS_execve, SYS_wait4, SYS_waitid, SYS_pipe2, SYS_unlinkat, SYS_renameat,
                   SYS_renameat2, SYS_mkdirat, SYS_getcwd, SYS_chdir, SYS_readlinkat, SYS_umask, SYS_getdents64,
                   SYS_getppid, SYS_getpgid, SYS_sendfile, SYS_copy_file_range, SYS_fallocate, SYS_pselect6},
                  ALLOW);
#if defined(__x86_64__)
    filter.always({SYS_fork, SYS_vfork, SYS_pipe, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_readlink,
                   SYS_getpgrp, SYS_select},
                  ALLOW);
#endif
    filter.when(SYS_clone, [&] {
        filter.any(0, NAMESPACES, KILL);
        filter.give(ALLOW);
    });
    // Linkers set the execute bit and do not look at the answer; on a stranger's file it must not work.
    filter.always({SYS_fchmodat, SYS_fchmod}, refuse(EPERM));
    kill_hostile(filter);
    filter.give(refuse(ENOSYS));
    filter.enforce();
}

// --- the rest ------------------------------------------------------------------------------------------------------

void limit(__rlimit_resource resource, uint64_t soft, uint64_t hard) {
    rlimit value{soft, hard}, now;
    // An ordinary user cannot raise a hard limit; one that is lower already is as good.
    if (!getrlimit(resource, &now) && now.rlim_max < hard) value = {now.rlim_max < soft ? now.rlim_max : soft,
                                                                    now.rlim_max};
    if (setrlimit(resource, &value)) fail("cannot set resource limit %d: %s", (int)resource, strerror(errno));
}

void drop_privileges() {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("cannot set no_new_privs: %s", strerror(errno));
    // Root keeps its number but nothing that goes with it; for everybody else these calls change nothing.
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int capability = 0; capability <= 63; ++capability) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    prctl(PR_SET_SECUREBITS, 0xef);  // NOROOT, NO_SETUID_FIXUP, no KEEP_CAPS, NO_CAP_AMBIENT_RAISE, all locked
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none)) fail("cannot drop capabilities: %s", strerror(errno));
}

void die_with(pid_t parent, int signal) {
    if (prctl(PR_SET_PDEATHSIG, signal)) fail("cannot tie the process to its parent: %s", strerror(errno));
    if (getppid() != parent) _exit(125);  // it died before the line above
}

// A page with the program's path at an address that nobody can guess.
const char* secret_copy(const char* path) {
    for (int attempt = 0; attempt < 64; ++attempt) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random) break;
        void* wanted = (void*)(0x100000000000ull + (random % 0x5fffffff) * 4096 * 4);
        void* page = mmap(wanted, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) continue;
        char* start = (char*)page + random % 61 * 16;
        return strncpy(start, path, 4096);
    }
    fail("no memory for the program's path");
}

pid_t child_of_warden;

// Tools start helpers of their own, which PDEATHSIG does not reach: the warden outlives its parent just long enough
// to kill the whole process group.
void guard_tools(pid_t parent) {
    if (getpgrp() != getpid()) fail("must be started as the leader of its own process group");
    signal(SIGTERM, [](int) { kill(0, SIGKILL); });
    die_with(parent, SIGTERM);
    pid_t self = getpid();
    child_of_warden = fork();
    if (child_of_warden < 0) fail("cannot fork: %s", strerror(errno));
    if (child_of_warden == 0) {
        signal(SIGTERM, SIG_DFL);
        die_with(self, SIGKILL);
        return;
    }
    if (syscall(436 /* close_range */, 0, ~0u, 0))  // so that readers see the end of what the tools write
        for (int fd = 0; fd < 1024; ++fd) close(fd);
    int status = 0;
    while (waitpid(child_of_warden, &status, 0) < 0 && errno == EINTR) continue;
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    kill(self, WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

void probe() {
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0 && errno == EINVAL) fail("seccomp");
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action)) fail("seccomp");
    int abi = landlock_abi();
    if (abi < 0) fail(errno == EOPNOTSUPP ? "landlock-disabled" : "landlock");
    printf("%d\n", abi);
}

uint64_t number(const char* text) { return strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && !strcmp(argv[1], "--probe")) return probe(), 0;
    if (argc < 13) fail("usage: see the head of confine.cpp");
    bool tools = !strcmp(argv[1], "tools"), script = !strcmp(argv[1], "script");
    pid_t parent = number(argv[2]);
    error_fd = number(argv[3]);
    fcntl(error_fd, F_SETFD, FD_CLOEXEC);
    uint64_t cpu_s = number(argv[4]), as_bytes = number(argv[5]), data_bytes = number(argv[6]),
             file_bytes = number(argv[7]);
    int core = atoi(argv[8]);
    const char* folder = argv[9];
    int shown = number(argv[10]);
    if (shown < 0 || argc < 13 + shown) fail("too few arguments for %d read-only paths", shown);
    char** read_only = argv + 11;
    const char* program = argv[11 + shown];
    char** arguments = argv + 12 + shown;

    if (chdir(folder)) fail("cannot enter %s: %s", folder, strerror(errno));
    if (core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        if (sched_setaffinity(0, sizeof set, &set)) fail("cannot pin to core %d: %s", core, strerror(errno));
    }
    for (int signal_number = 1; signal_number < 32; ++signal_number) signal(signal_number, SIG_DFL);
    sigset_t nothing;
    sigemptyset(&nothing);
    sigprocmask(SIG_SETMASK, &nothing, nullptr);

    if (tools) guard_tools(parent);
    else die_with(parent, SIGKILL);

    int abi = landlock_abi();
    if (abi < 1) fail("Landlock is not there: %s", strerror(errno));
    Landlock landlock(abi);
    // A program only writes files that are there already: their number times RLIMIT_FSIZE bounds what it can fill.
    uint64_t write = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE;
    landlock.allow(folder, tools ? write | MAKE_REG | REMOVE_FILE | MAKE_DIR | REMOVE_DIR : write);
    landlock.allow("/dev/null", READ_FILE | WRITE_FILE);
    for (const char* path : LIBRARIES) landlock.allow_if_there(path, READ_FILE | READ_DIR | (tools ? EXECUTE : 0));
    if (tools)
        for (const char* path : TOOLS) landlock.allow_if_there(path, READ_FILE | READ_DIR | EXECUTE);
    for (int i = 0; i < shown; ++i) landlock.allow(read_only[i], READ_FILE | READ_DIR | (tools ? EXECUTE : 0));
    char loader[256];
    if (interpreter(program, loader, sizeof loader)) landlock.allow(loader, READ_FILE | EXECUTE);
    landlock.allow(program, READ_FILE | EXECUTE);

    const char* key = secret_copy(program);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, cpu_s, cpu_s + 1);
    limit(RLIMIT_FSIZE, file_bytes, file_bytes);
    limit(RLIMIT_NOFILE, tools ? 256 : 64, tools ? 256 : 64);
    limit(RLIMIT_MEMLOCK, 0, 0);
    limit(RLIMIT_MSGQUEUE, 0, 0);
    limit(RLIMIT_STACK, 8 << 20, 64 << 20);
    limit(RLIMIT_DATA, data_bytes, data_bytes);
    limit(RLIMIT_AS, as_bytes, as_bytes);
    drop_privileges();
    landlock.enforce();
    if (tools) filter_tools();
    else filter_program(data_bytes, key, script);
    execve(key, arguments, environ);
    fail("cannot execute %s: %s", program, strerror(errno));
}
