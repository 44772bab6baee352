// Package nonblock reads and writes TCP connections with less work for Go's scheduler.
//
// A read or write of the package net tells the scheduler before and after that the system is at work, because it
// might take long. On a socket that does not block it never does: what waits is the poller. For the few octets of a
// DNS message that costs more than the call itself, so the connections of this package leave it out. All else is as
// net does it: deadlines, closing, errors and their texts.
//
// On systems other than Linux connections are as they are. Start at Conn; Adopt makes one of a descriptor that was
// used without the poller before, by Receive and Send. Packets and Keeper are for UDP sockets, which go on not to block
// when another process has copies of them.
package nonblock
