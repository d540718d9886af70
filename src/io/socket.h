/* Sockets: socket.c. */
#ifndef ACO_IO_SOCKET_H
#define ACO_IO_SOCKET_H

#include "io/address.h"

ACO__HIDDEN int aco__io_check_options(const char *call, const aco_io_options_t *options);
/* A socket for this address, with the options of `flags`. -1 and errno. */
ACO__HIDDEN int aco__io_socket_for(const aco__io_address_t *address, unsigned flags, int listens);
/* Closes a socket after a failure: -1, with the failure's errno. */
ACO__HIDDEN int aco__io_give_up(int fd);

#endif
