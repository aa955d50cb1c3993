// What a hostile program would try, one attack per run: `attacks NAME [ARGUMENT]`. It prints `done` when the attack
// went through and `refused ERRNO` when the system said no; anything else is how the process ended.
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

extern char** environ;

static int say(long result) {
    if (result < 0) dprintf(1, "refused %d\n", errno);
    else dprintf(1, "done\n");
    return 0;
}

static const long GIB = 1l << 30;

static void* spin(void*) { return nullptr; }

// Touches memory as it comes, until there is no more.
static int eat(long step, int flags) {
    long got = 0;
    while (got < 10 * GIB) {
        char* p = (char*)mmap(nullptr, step, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p == MAP_FAILED) break;
        for (long i = 0; i < step; i += 4096) p[i] = 1;
        got += step;
    }
    dprintf(1, "got %ld MiB\n", got >> 20);
    return 0;
}

static int open_and_say(const char* path, int flags) {
    int fd = open(path, flags, 0600);
    if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        char text[200];
        ssize_t length = read(fd, text, sizeof text);
        if (length > 0 && write(1, text, length) < 0) return 1;
    }
    return say(fd);
}

int main(int argc, char** argv) {
    std::string argument = argc > 2 ? argv[2] : "";
    const char* path = argument.c_str();
    pid_t victim = atoi(path);
    int fd;
    iovec piece{argv, 8};
    rlimit small{1, 1}, large{RLIM_INFINITY, RLIM_INFINITY};
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(0, &cores);
    std::map<std::string, std::function<int()>> attacks{
        {"nothing", [&] { return say(0); }},
        {"exec", [&] { char* a[] = {argv[2], nullptr}; return say(execve(path, a, environ)); }},
        {"execveat", [&] { char* a[] = {argv[2], nullptr}; return say(syscall(SYS_execveat, AT_FDCWD, path, a, environ, 0)); }},
        {"system", [&] { return say(system(path) == 0 ? 0 : -1); }},
        {"fork", [&] { return say(fork()); }},
        {"vfork", [&] { pid_t p = vfork(); if (p == 0) _exit(0); return say(p); }},
        {"raw fork", [&] { return say(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
        {"thread", [&] { pthread_t t; errno = pthread_create(&t, nullptr, spin, nullptr); return say(errno ? -1 : 0); }},
        {"socket", [&] { return say(socket(AF_INET, SOCK_STREAM, 0)); }},
        {"unix socket", [&] { return say(socket(AF_UNIX, SOCK_STREAM, 0)); }},
        {"netlink", [&] { return say(socket(AF_NETLINK, SOCK_RAW, 0)); }},
        {"socketpair", [&] { int s[2]; return say(socketpair(AF_UNIX, SOCK_STREAM, 0, s)); }},
        {"ptrace", [&] { return say(ptrace(PTRACE_ATTACH, victim, 0, 0)); }},
        {"kill", [&] { return say(kill(victim, SIGKILL)); }},
        {"tkill", [&] { return say(syscall(SYS_tkill, victim, SIGKILL)); }},
        {"tgkill", [&] { return say(syscall(SYS_tgkill, victim, victim, SIGKILL)); }},
        {"sigqueue", [&] { siginfo_t i{}; i.si_code = -1; return say(syscall(SYS_rt_sigqueueinfo, victim, SIGKILL, &i)); }},
        {"pidfd", [&] { return say(syscall(434, victim, 0)); }},
        {"setown", [&] { return say(fcntl(1, F_SETOWN, victim)); }},
        {"async", [&] { return say(fcntl(1, F_SETFL, O_ASYNC)); }},
        {"ioctl owner", [&] { return say(ioctl(1, 0x8901, &victim)); }},
        {"setpriority", [&] { return say(setpriority(PRIO_PROCESS, victim, 19)); }},
        {"setaffinity", [&] { return say(sched_setaffinity(victim, sizeof cores, &cores)); }},
        {"prlimit", [&] { return say(prlimit(victim, RLIMIT_CPU, &small, nullptr)); }},
        {"setrlimit", [&] { return say(setrlimit(RLIMIT_FSIZE, &large)); }},
        {"read memory", [&] { return say(process_vm_readv(victim, &piece, 1, &piece, 1, 0)); }},
        {"read", [&] { return open_and_say(path, O_RDONLY); }},
        {"write", [&] { return open_and_say(path, O_WRONLY); }},
        {"create", [&] { return open_and_say(path, O_WRONLY | O_CREAT); }},
        {"truncating read", [&] { return open_and_say(path, O_RDONLY | O_TRUNC); }},
        {"truncate", [&] { return say(truncate(path, 0)); }},
        {"list", [&] { fd = open(path, O_RDONLY | O_DIRECTORY); char b[4096]; return say(fd < 0 ? fd : syscall(SYS_getdents64, fd, b, sizeof b)); }},
        {"chmod", [&] { return say(chmod(path, 0777)); }},
        {"chown", [&] { return say(chown(path, 1, 1)); }},
        {"utime", [&] { return say(utimes(path, nullptr)); }},
        {"setxattr", [&] { return say(setxattr(path, "user.x", "y", 1, 0)); }},
        {"unlink", [&] { return say(unlink(path)); }},
        {"rename", [&] { return say(rename(path, (argument + "2").c_str())); }},
        {"symlink", [&] { return say(symlink("/etc/passwd", path)); }},
        {"link", [&] { return say(link("/etc/passwd", path)); }},
        {"mkdir", [&] { return say(mkdir(path, 0777)); }},
        {"mknod", [&] { return say(mknod(path, S_IFIFO | 0600, 0)); }},
        {"chdir", [&] { return say(chdir("/")); }},
        {"mount", [&] { return say(syscall(SYS_mount, "none", path, "tmpfs", 0, nullptr)); }},
        {"unshare", [&] { return say(unshare(CLONE_NEWUSER)); }},
        {"chroot", [&] { return say(chroot(path)); }},
        {"bpf", [&] { return say(syscall(SYS_bpf, 5, nullptr, 0)); }},
        {"perf", [&] { return say(syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }},
        {"keyctl", [&] { return say(syscall(SYS_keyctl, 0, -3, 1)); }},
        {"io_uring", [&] { char p[120] = {}; return say(syscall(425, 4, p)); }},
        {"memfd", [&] { return say(syscall(SYS_memfd_create, "x", 0)); }},
        {"pdeathsig", [&] { return say(prctl(PR_SET_PDEATHSIG, 0)); }},
        {"new session", [&] { return say(setsid()); }},
        {"personality", [&] { return say(syscall(SYS_personality, 0x0040000)); }},
        {"shared memory", [&] { return say(syscall(SYS_shmget, 0, 4096, 01600)); }},
        {"message queue", [&] { return say(syscall(SYS_msgget, 0, 01600)); }},
        {"become root", [&] { return say(setuid(0)); }},
        {"10 GB at once", [&] { return eat(10 * GIB, MAP_PRIVATE | MAP_ANONYMOUS); }},
        {"10 GB bit by bit", [&] { return eat(8 << 20, MAP_PRIVATE | MAP_ANONYMOUS); }},
        {"10 GB shared", [&] { return eat(8 << 20, MAP_SHARED | MAP_ANONYMOUS); }},
        {"10 GB of stacks", [&] { return eat(8 << 20, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN); }},
        {"10 GB of heap", [&] { long got = 0; for (; got < 10240 && malloc(1 << 20); ++got) continue; dprintf(1, "got %ld MiB\n", got); return 0; }},
        {"10 GB unprotected later", [&] {
            long got = 0;
            char* p = (char*)mmap(nullptr, 10 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            for (; got < 10 * GIB && !mprotect(p + got, 8 << 20, PROT_READ | PROT_WRITE); got += 8 << 20) memset(p + got, 1, 8 << 20);
            dprintf(1, "got %ld MiB\n", got >> 20);
            return 0;
        }},
        {"10 GB file", [&] {
            static char block[1 << 20];
            if ((fd = open(path, O_WRONLY)) < 0) return say(fd);
            for (int i = 0; i < 10240; ++i) if (write(fd, block, sizeof block) < 0) return say(-1);
            return say(0);
        }},
        {"10 GB hole", [&] { fd = open(path, O_WRONLY); signal(SIGXFSZ, SIG_IGN); return say(fd < 0 ? fd : ftruncate(fd, 10 * GIB)); }},
        {"environment", [&] { for (char** e = environ; *e; ++e) puts(*e); return 0; }},
        {"loop", [&] { for (volatile int i = 0;; ) i = i + 1; return 0; }},
        {"stubborn loop", [&] { for (int s = 1; s < 32; ++s) signal(s, SIG_IGN); for (volatile int i = 0;; ) i = i + 1; return 0; }},
        {"sleep", [&] { for (;;) usleep(1000000); return 0; }},
        {"close and sleep", [&] { close(1); close(2); for (;;) usleep(1000000); return 0; }},
        {"flood", [&] { static char block[1 << 16]; for (;;) if (write(1, block, sizeof block) < 0) return 1; }},
        {"abort", [&] { abort(); return 0; }},
        {"crash", [&] { *(volatile int*)0 = 1; return 0; }},
        {"echo", [&] { char line[100]; while (fgets(line, sizeof line, stdin)) { fputs(line, stdout); fflush(stdout); } return 0; }},
        {"open files", [&] { int n = 0; while (dup(1) >= 0) ++n; dprintf(1, "%d\n", n); return 0; }},
#if defined(__x86_64__)
        {"32-bit call", [&] { long r; asm volatile("int $0x80" : "=a"(r) : "a"(20)); return say(r); }},
        {"x32 call", [&] { return say(syscall(0x40000000 + SYS_getpid)); }},
#endif
    };
    auto attack = attacks.find(argc > 1 ? argv[1] : "");
    if (attack == attacks.end()) return fprintf(stderr, "no such attack\n"), 2;
    return attack->second();
}
