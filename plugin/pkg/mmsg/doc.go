// Package mmsg sends and receives datagrams in batches, by one system call each, on Linux. What goes to one peer
// can go through the kernel together. Start at Incoming and Outgoing.
package mmsg

// Segment says whether datagrams for one peer go to the kernel together, where it can cut them apart again, for
// those that ask for it; the flag -dns.segment sets it.
var Segment = true
