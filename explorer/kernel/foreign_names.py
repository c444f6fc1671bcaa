"""Functions and types that the headers of C, POSIX and CUDA declare outside of any namespace: no kernel can have their names."""

from __future__ import annotations

import re
from functools import cache

_STEMS = """
a64l abort abs access acct acos acosh acospi adjtime alarm aligned_alloc alloca arc4random asctime asin asinh asinpi asprintf
at_quick_exit atan atan2 atanh atanpi atexit atof atoi atol atoll atoq basename bcmp bcopy brk bsearch btowc bzero calloc
canonicalize canonicalize_file_name cbrt ceil chdir chmod chown chroot clearenv clearerr clock clone close close_range closefrom
confstr copysign cos cosh cospi creat crypt ctermid ctime cuserid cyl_bessel_i0 cyl_bessel_i1 dadd daemon ddiv dfma difftime dim3
div dmul drand48 drem dsqrt dsub dup dup2 dup3 dysize eaccess ecvt endusershell environ erand48 erf erfc erfcinv erfcx erfinv
euidaccess fabs execl execle execlp execv execve execveat execvp execvpe exit exp exp10 exp2 explicit_bzero expm1 faccessat fadd
fallocate fchdir fchmod fchmodat fchown fchownat fclose fcloseall fcntl fcvt fdatasync fdim fdiv fdivide fdopen feof ferror
fexecve fflush ffma ffs ffsl ffsll fgetc fgetpos fgets fgetwc fgetws fileno finite flock flockfile floor fma fmax fmaxmag
fmemopen fmin fminmag fmod fmul fopen fopencookie fork fpathconf fputc fputs fputwc fputws fread free freelocale freopen frexp
fscanf fseek fseeko fsetpos fsqrt fstat fstatat fsub fsync ftell ftello ftruncate ftrylockfile funlockfile futimens futimes
futimesat fwide fwrite fwscanf gamma gcvt gmtime grantpt group_member gsignal half half2 hypot ilogb index initstate iovec j0 j1
jn jrand48 kill killpg l64a labs lchmod lchown lcong48 lconv ldexp ldiv lgamma link linkat llabs lldiv llmax llmin llogb llrint
llround localeconv localtime lockf log log10 log1p log2 logb longjmp lrand48 lrint lround lseek lstat lutimes malloc max mblen
mbrlen mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memrchr
memset min mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkostemp mkostemps mkstemp mkstemps mktemp mktime modf mrand48 nan
nanosleep nearbyint newlocale nextafter nextdown nexttoward nextup nice norm norm3d norm4d normcdf normcdfinv nrand48 nv_bfloat16
obstack obstack_printf obstack_vprintf on_exit open open_memstream open_wmemstream openat optarg opterr optind optopt pathconf
pause pclose perror pipe pipe2 popen pow pread printf profil pselect psiginfo psignal ptsname putc putchar putenv puts putw putwc
putwchar pwrite qecvt qfcvt qgcvt qsort quick_exit raise rand random rawmemchr rcbrt read readahead readlink readlinkat realloc
reallocarray realpath remainder remove remquo rename renameat renameat2 revoke rewind rhypot rindex rint rmdir rnorm rnorm3d
rnorm4d round roundeven rpmatch rsqrt saturate sbrk scalb scalbln scalbn scanf secure_getenv seed48 select setjmp significand sin
sincos sincospi sinh sinpi sleep splice sqrt srand srand48 srandom sscanf ssignal stat statx stpcpy stpncpy swab swscanf symlink
symlinkat sync sync_file_range syncfs syscall sysconf system sysv_signal tan tanh tanpi tcgetpgrp tcsetpgrp tee tempnam tgamma
tgkill time timegm timelocal timespec timeval timex timezone tm tmpfile tmpnam toascii tolower toupper trunc truncate ttyname
ttyslot tzname tzset ualarm uint ullmax ullmin ulong umask umax umin ungetc ungetwc unlink unlinkat unlockpt unsetenv unshare
uselocale ushort usleep utimensat utimes valloc vasprintf vfork vfscanf vfwscanf vhangup vmsplice vscanf vsscanf vswscanf vwscanf
wait wcstombs wctomb wcwidth wmemchr wmemcmp wmemcpy wmemmove wmempcpy wmemset write wscanf y0 y1 yn recv send link
"""
_KINDS = "f(?:32|64)x?(?:add|sub|mul|div|fma|sqrt)|fm(?:ax|in)imum(?:_mag)?(?:_num)?|totalorder(?:mag)?"
_FAMILIES = (r"u?fromfpx?|(?:get|set)payload(?:sig)?|str[a-z]+|wc[a-z]+|is[a-z]+|v?[fds]?n?w?printf|pthread_\w+|sched_\w+|sig\w+|"
             r"(?:get|set)[a-z]+(?:_\w+)?|(?:clock|timer|posix|process|program|name|file|cookie)_\w+|u_\w+|\w+_t|atomic[A-Z]\w*|fd_\w+|"
             r"[bl]e\d\dtoh|hto[bl]e\d\d|random_data|drand48_data|syncthreads\w*|tex\w*|surf\w*")
_SUFFIX = r"(?:f(?:32|64)?x?|f128|l|64)?(?:_r|_l|_np|_unlocked|_data|_at|_buf|_uniform|_timestamp|_getres|_get|_handle)*"


@cache
def _foreign() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(_STEMS.split())}|{_KINDS}|{_FAMILIES}){_SUFFIX}|FILE|DIR|va_list")


def is_declared(name: str) -> bool:
    """Whether a header may declare a function, a variable or a type of this name."""
    return _foreign().fullmatch(name) is not None
