// Package mmsg receives and sends datagrams in batches, by recvmmsg(2) and sendmmsg(2), on sockets that do not wait. Other
// systems than Linux have neither, and of this package only what is asked for, which changes nothing there.
package mmsg
