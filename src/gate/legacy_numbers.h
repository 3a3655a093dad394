// Numbers of calls that not every architecture has; absent ones drop out of the table.
// One line per LEGACY row of syscalls.def: the preprocessor cannot ask for a name it builds.
#pragma once

#ifdef __NR__sysctl
constexpr int legacy__sysctl = __NR__sysctl;
#else
constexpr int legacy__sysctl = absent;
#endif
#ifdef __NR_access
constexpr int legacy_access = __NR_access;
#else
constexpr int legacy_access = absent;
#endif
#ifdef __NR_afs_syscall
constexpr int legacy_afs_syscall = __NR_afs_syscall;
#else
constexpr int legacy_afs_syscall = absent;
#endif
#ifdef __NR_alarm
constexpr int legacy_alarm = __NR_alarm;
#else
constexpr int legacy_alarm = absent;
#endif
#ifdef __NR_arch_prctl
constexpr int legacy_arch_prctl = __NR_arch_prctl;
#else
constexpr int legacy_arch_prctl = absent;
#endif
#ifdef __NR_chmod
constexpr int legacy_chmod = __NR_chmod;
#else
constexpr int legacy_chmod = absent;
#endif
#ifdef __NR_chown
constexpr int legacy_chown = __NR_chown;
#else
constexpr int legacy_chown = absent;
#endif
#ifdef __NR_creat
constexpr int legacy_creat = __NR_creat;
#else
constexpr int legacy_creat = absent;
#endif
#ifdef __NR_create_module
constexpr int legacy_create_module = __NR_create_module;
#else
constexpr int legacy_create_module = absent;
#endif
#ifdef __NR_dup2
constexpr int legacy_dup2 = __NR_dup2;
#else
constexpr int legacy_dup2 = absent;
#endif
#ifdef __NR_epoll_create
constexpr int legacy_epoll_create = __NR_epoll_create;
#else
constexpr int legacy_epoll_create = absent;
#endif
#ifdef __NR_epoll_ctl_old
constexpr int legacy_epoll_ctl_old = __NR_epoll_ctl_old;
#else
constexpr int legacy_epoll_ctl_old = absent;
#endif
#ifdef __NR_epoll_wait
constexpr int legacy_epoll_wait = __NR_epoll_wait;
#else
constexpr int legacy_epoll_wait = absent;
#endif
#ifdef __NR_epoll_wait_old
constexpr int legacy_epoll_wait_old = __NR_epoll_wait_old;
#else
constexpr int legacy_epoll_wait_old = absent;
#endif
#ifdef __NR_eventfd
constexpr int legacy_eventfd = __NR_eventfd;
#else
constexpr int legacy_eventfd = absent;
#endif
#ifdef __NR_fork
constexpr int legacy_fork = __NR_fork;
#else
constexpr int legacy_fork = absent;
#endif
#ifdef __NR_futimesat
constexpr int legacy_futimesat = __NR_futimesat;
#else
constexpr int legacy_futimesat = absent;
#endif
#ifdef __NR_get_kernel_syms
constexpr int legacy_get_kernel_syms = __NR_get_kernel_syms;
#else
constexpr int legacy_get_kernel_syms = absent;
#endif
#ifdef __NR_get_thread_area
constexpr int legacy_get_thread_area = __NR_get_thread_area;
#else
constexpr int legacy_get_thread_area = absent;
#endif
#ifdef __NR_getdents
constexpr int legacy_getdents = __NR_getdents;
#else
constexpr int legacy_getdents = absent;
#endif
#ifdef __NR_getpgrp
constexpr int legacy_getpgrp = __NR_getpgrp;
#else
constexpr int legacy_getpgrp = absent;
#endif
#ifdef __NR_getpmsg
constexpr int legacy_getpmsg = __NR_getpmsg;
#else
constexpr int legacy_getpmsg = absent;
#endif
#ifdef __NR_inotify_init
constexpr int legacy_inotify_init = __NR_inotify_init;
#else
constexpr int legacy_inotify_init = absent;
#endif
#ifdef __NR_ioperm
constexpr int legacy_ioperm = __NR_ioperm;
#else
constexpr int legacy_ioperm = absent;
#endif
#ifdef __NR_iopl
constexpr int legacy_iopl = __NR_iopl;
#else
constexpr int legacy_iopl = absent;
#endif
#ifdef __NR_lchown
constexpr int legacy_lchown = __NR_lchown;
#else
constexpr int legacy_lchown = absent;
#endif
#ifdef __NR_link
constexpr int legacy_link = __NR_link;
#else
constexpr int legacy_link = absent;
#endif
#ifdef __NR_lstat
constexpr int legacy_lstat = __NR_lstat;
#else
constexpr int legacy_lstat = absent;
#endif
#ifdef __NR_mkdir
constexpr int legacy_mkdir = __NR_mkdir;
#else
constexpr int legacy_mkdir = absent;
#endif
#ifdef __NR_mknod
constexpr int legacy_mknod = __NR_mknod;
#else
constexpr int legacy_mknod = absent;
#endif
#ifdef __NR_modify_ldt
constexpr int legacy_modify_ldt = __NR_modify_ldt;
#else
constexpr int legacy_modify_ldt = absent;
#endif
#ifdef __NR_open
constexpr int legacy_open = __NR_open;
#else
constexpr int legacy_open = absent;
#endif
#ifdef __NR_pause
constexpr int legacy_pause = __NR_pause;
#else
constexpr int legacy_pause = absent;
#endif
#ifdef __NR_pipe
constexpr int legacy_pipe = __NR_pipe;
#else
constexpr int legacy_pipe = absent;
#endif
#ifdef __NR_poll
constexpr int legacy_poll = __NR_poll;
#else
constexpr int legacy_poll = absent;
#endif
#ifdef __NR_putpmsg
constexpr int legacy_putpmsg = __NR_putpmsg;
#else
constexpr int legacy_putpmsg = absent;
#endif
#ifdef __NR_query_module
constexpr int legacy_query_module = __NR_query_module;
#else
constexpr int legacy_query_module = absent;
#endif
#ifdef __NR_readlink
constexpr int legacy_readlink = __NR_readlink;
#else
constexpr int legacy_readlink = absent;
#endif
#ifdef __NR_rename
constexpr int legacy_rename = __NR_rename;
#else
constexpr int legacy_rename = absent;
#endif
#ifdef __NR_renameat
constexpr int legacy_renameat = __NR_renameat;
#else
constexpr int legacy_renameat = absent;
#endif
#ifdef __NR_rmdir
constexpr int legacy_rmdir = __NR_rmdir;
#else
constexpr int legacy_rmdir = absent;
#endif
#ifdef __NR_security
constexpr int legacy_security = __NR_security;
#else
constexpr int legacy_security = absent;
#endif
#ifdef __NR_select
constexpr int legacy_select = __NR_select;
#else
constexpr int legacy_select = absent;
#endif
#ifdef __NR_set_thread_area
constexpr int legacy_set_thread_area = __NR_set_thread_area;
#else
constexpr int legacy_set_thread_area = absent;
#endif
#ifdef __NR_signalfd
constexpr int legacy_signalfd = __NR_signalfd;
#else
constexpr int legacy_signalfd = absent;
#endif
#ifdef __NR_stat
constexpr int legacy_stat = __NR_stat;
#else
constexpr int legacy_stat = absent;
#endif
#ifdef __NR_symlink
constexpr int legacy_symlink = __NR_symlink;
#else
constexpr int legacy_symlink = absent;
#endif
#ifdef __NR_sysfs
constexpr int legacy_sysfs = __NR_sysfs;
#else
constexpr int legacy_sysfs = absent;
#endif
#ifdef __NR_time
constexpr int legacy_time = __NR_time;
#else
constexpr int legacy_time = absent;
#endif
#ifdef __NR_tuxcall
constexpr int legacy_tuxcall = __NR_tuxcall;
#else
constexpr int legacy_tuxcall = absent;
#endif
#ifdef __NR_unlink
constexpr int legacy_unlink = __NR_unlink;
#else
constexpr int legacy_unlink = absent;
#endif
#ifdef __NR_uselib
constexpr int legacy_uselib = __NR_uselib;
#else
constexpr int legacy_uselib = absent;
#endif
#ifdef __NR_ustat
constexpr int legacy_ustat = __NR_ustat;
#else
constexpr int legacy_ustat = absent;
#endif
#ifdef __NR_utime
constexpr int legacy_utime = __NR_utime;
#else
constexpr int legacy_utime = absent;
#endif
#ifdef __NR_utimes
constexpr int legacy_utimes = __NR_utimes;
#else
constexpr int legacy_utimes = absent;
#endif
#ifdef __NR_vfork
constexpr int legacy_vfork = __NR_vfork;
#else
constexpr int legacy_vfork = absent;
#endif
#ifdef __NR_vserver
constexpr int legacy_vserver = __NR_vserver;
#else
constexpr int legacy_vserver = absent;
#endif
