//go:build race

package sockcall

// raceEnabled says that connections are read and written by the package syscall.
const raceEnabled = true

var noReceive, noSend refusal
