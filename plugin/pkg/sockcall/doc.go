// Package sockcall makes system calls on sockets that do not block, on Linux. As they never wait, Go's scheduler is not
// told of them. Where a sandbox refuses a call, such as by a seccomp profile that was made from what another server
// calls, one that each server needs does its work:
//
//	recvmmsg, sendmmsg  recvmsg, sendmsg for each datagram
//	recvfrom, sendto    recvmsg, sendmsg; read, write of connections
//
// Nothing stands in for recvmsg, sendmsg, accept4 and getsockname: they are made as Go's own packages make them, which
// is not by calls of those names on each processor.
//
// A descriptor must stay open until a call returns; who makes one sees to that. Start at ReceiveBatch and Receive.
package sockcall
