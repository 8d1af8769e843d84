/*
 * The entry point of lacuna-node. Our own, because the one of a recent C library asks for
 * __libc_start_main of glibc 2.34, and this program has to start on 2.17. There are no constructors
 * in the program itself, so none are passed; the distributed lacuna, which starts here too, has some.
 */
#if defined(__x86_64__)
    .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
    .text
    .globl _start
    .type _start, @function
_start:
    xor %ebp, %ebp
    mov %rdx, %r9           /* what the dynamic loader wants run at exit */
    pop %rsi                /* argc */
    mov %rsp, %rdx          /* argv */
    and $-16, %rsp
    push %rax
    push %rsp
    xor %r8d, %r8d          /* no destructors */
#if defined(LAC_RUN_CONSTRUCTORS)
    lea lac_run_constructors(%rip), %rcx
#else
    xor %ecx, %ecx          /* no constructors */
#endif
    lea main(%rip), %rdi
    call *__libc_start_main@GOTPCREL(%rip)
    hlt
#elif defined(__aarch64__)
    .symver __libc_start_main, __libc_start_main@GLIBC_2.17
    .text
    .globl _start
    .type _start, %function
_start:
    mov x29, #0
    mov x30, #0
    mov x5, x0              /* what the dynamic loader wants run at exit */
    ldr x1, [sp]            /* argc */
    add x2, sp, #8          /* argv */
    mov x6, sp
    adrp x0, main
    add x0, x0, :lo12:main
    mov x3, #0              /* no constructors */
    mov x4, #0              /* no destructors */
    bl __libc_start_main
    b abort
#endif
    .section .note.GNU-stack, "", %progbits
