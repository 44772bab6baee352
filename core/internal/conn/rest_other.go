//go:build !linux

package conn

// poller is none: a goroutine waits for each connection.
type poller struct{}

func resting() *poller { return nil }

func (*poller) add(*Conn) bool { return false }
func (*poller) remove(*Conn)   {}

// Resting is how many connections of the process rest.
func Resting() int { return 0 }
