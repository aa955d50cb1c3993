#include "report.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "../device/runtime.hpp"

namespace cuda_host {

namespace {

struct Finding {
    Kind kind;
    Place where{0}, other{0};
    long count = 0;
    char text[480] = "";
    Finding() : kind(Kind::fault) {}
};

constexpr unsigned most_findings = 32;
Finding findings[most_findings];
unsigned findings_count;

const char* const kind_names[] = {"out-of-bounds", "input-written", "race-shared",  "race-global", "uninitialised",
                                  "divergence",    "early-exit",    "misaligned",  "stack-overflow", "wild-access",
                                  "timeout",       "arithmetic",    "trap",        "bad-launch",     "fault"};

// A rotating buffer: several of these texts may stand in one message.
char* scratch() {
    static char texts[8][64];
    static unsigned next;
    return texts[next++ % 8];
}

bool same(const Place& a, const Place& b) { return a.line == b.line && a.pc == b.pc; }

Finding* room_for(Kind kind) {
    if (findings_count < most_findings) return &findings[findings_count++];
    if (is_advice(kind)) return nullptr;
    for (Finding& f : findings)
        if (is_advice(f.kind)) return &f;
    return nullptr;
}

void send_findings() {
    for (unsigned i = 0; i < findings_count; ++i) {
        const Finding& f = findings[i];
        send("finding\t%s\t%d\t%d\t%lx\t%lx\t%ld\t%s\n", kind_names[static_cast<int>(f.kind)], f.where.line, f.other.line,
             static_cast<unsigned long>(f.where.pc), static_cast<unsigned long>(f.other.pc), f.count, f.text);
    }
    findings_count = 0;
}

}  // namespace

bool noted_again(Kind kind, Place where, Place other) {
    for (unsigned i = 0; i < findings_count; ++i) {
        Finding& f = findings[i];
        if (f.kind != kind || !same(f.where, where) || !same(f.other, other)) continue;
        ++f.count;
        return true;
    }
    return false;
}

void note(Kind kind, Place where, Place other, const char* text, ...) {
    if (noted_again(kind, where, other)) return;
    Finding* room = room_for(kind);
    if (!room) return;
    Finding& f = *room;
    f.kind = kind, f.where = where, f.other = other, f.count = 1;
    va_list list;
    va_start(list, text);
    vsnprintf(f.text, sizeof f.text, text, list);
    va_end(list);
    for (char* c = f.text; *c; ++c)
        if (static_cast<unsigned char>(*c) < ' ') *c = ' ';
}

bool any_fault_noted() {
    for (unsigned i = 0; i < findings_count; ++i)
        if (!is_advice(findings[i].kind)) return true;
    return false;
}

void format(char* out, std::size_t size, const char* text, ...) {
    va_list list;
    va_start(list, text);
    vsnprintf(out, size, text, list);
    va_end(list);
}

const char* block_text() {
    char* out = scratch();
    snprintf(out, 64, "(%u,%u,%u)", block_index.x, block_index.y, block_index.z);
    return out;
}

const char* thread_text(const Thread* thread) {
    char* out = scratch();
    if (!thread) return "?";
    snprintf(out, 64, "(%u,%u,%u)", thread->index.x, thread->index.y, thread->index.z);
    return out;
}

const char* here_text() {
    static char text[160];
    snprintf(text, sizeof text, "block %s, thread %s", block_text(), thread_text(current));
    return text;
}

void send(const char* text, ...) {
    char line[1024];
    va_list list;
    va_start(list, text);
    int left = vsnprintf(line, sizeof line, text, list);
    va_end(list);
    if (left >= static_cast<int>(sizeof line)) {
        left = sizeof line - 1;
        line[left - 1] = '\n';
    }
    for (const char* at = line; left > 0;) {
        const ssize_t written = write(STDOUT_FILENO, at, static_cast<size_t>(left));
        if (written <= 0) _exit(74);
        at += written;
        left -= static_cast<int>(written);
    }
}

void end(const char* how) {
    send_findings();
    send("end\t%s\n", how);
    _exit(0);
}

}  // namespace cuda_host
