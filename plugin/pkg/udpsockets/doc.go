// Package udpsockets is UDP sockets to servers as an operating system has them to offer: many of them, each on a random
// port (RFC 5452 §9.2), which one goroutine reads, or that of the loop which asked.
//
//	Set.Open ──▶ Socket.Send, SendAll ──▶ server ──▶ epoll, or a goroutine for each ──▶ Receiver.Received
//
// udpsockets.go has the words. On Linux epoll_linux.go is the quick way: one set of descriptors, datagrams read and
// sent many at a time. moves_linux.go gives a socket one port after another. portable.go is the way that works
// everywhere, with a goroutine for each socket; new_other.go takes it where there is no other.
//
// The package knows nothing of DNS. Start at New.
package udpsockets
