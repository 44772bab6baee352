package eventloop

import (
	"os"
	"runtime"
	"syscall"
)

// Yield is for a goroutine that computes for long: between two pieces of its work it lets those run whose sockets have
// something to read. runtime.Gosched does not. The scheduler asks the kernel which sockets are readable only when no
// goroutine can run, or after ten milliseconds; who yields so can run at once, and where each processor has such a
// goroutine, all that serve wait these ten milliseconds.
//
// So Yield waits for the kernel, too: for a descriptor of its own (eventfd(2)) that it makes readable before. By the
// time it returns, all others that were readable have been found. It costs some two microseconds.
func Yield() {
	var y *yielder
	select {
	case y = <-yielders:
	default:
		y = newYielder()
	}
	if y == nil {
		runtime.Gosched()
		return
	}
	y.written = false
	_ = y.raw.Read(y.turn)
	select {
	case yielders <- y:
	default:
		_ = y.file.Close()
	}
}

// yielders are those that nobody uses at the moment: as many as have computed at one time, within reason.
var yielders = make(chan *yielder, 64)

// yielder is a descriptor that one goroutine at a time waits for.
type yielder struct {
	file    *os.File
	raw     syscall.RawConn
	turn    func(fd uintptr) bool
	written bool
	octets  [8]byte
}

// newYielder is nil if there is no descriptor to be had.
func newYielder() *yielder {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil
	}
	y := &yielder{file: os.NewFile(fd, "eventfd")}
	y.raw, _ = y.file.SyscallConn() // its error is that of a closed file
	y.turn = func(fd uintptr) (done bool) {
		if !y.written { // here and not before: what the kernel has told before Read began is forgotten
			y.octets = [8]byte{7: 1} // any number but 0, in whatever order of octets
			_, err := syscall.Write(int(fd), y.octets[:])
			y.written = true
			return err != nil
		}
		_, _ = syscall.Read(int(fd), y.octets[:])
		return true
	}
	return y
}
