// Package exec decides who runs a query: the goroutine that reads, a worker, or nobody while it is parked; and how
// many may wait.
//
//	              ┌─ Done: the reader has it ──▶ reply
//	Run.Serve ────┼─ Park: Later ──▶ parked ──exchange ends──▶ Resume ──▶ Run.Serve again
//	(wire lane)   ├─ Block: Later ──▶ worker ──▶ Run.Serve again, where it may wait
//	              └─ Unpack: Later ──▶ worker ──▶ Source.ServeMessage (message lane);
//	                         over UDP where handlers are quick: Lead.Call, inline
//
// What waits is bounded for the process: beyond it LaterOrDrop drops, if it can make no room (room.go), and Later
// waits, so that a stream is not read any further. Where processors are short, what is too late is dropped
// (backlog.go). Serve is for transports that have a goroutine for each query anyway.
//
// The package knows no sockets and no plugins. Start at Run.Serve; then Later.
package exec
