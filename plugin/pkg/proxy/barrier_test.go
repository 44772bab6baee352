package proxy

import (
	"testing"
	"time"
)

// Who waits at a barrier waits for those who had entered, also for those whom an earlier one waits for, and neither for
// those who enter later nor against those who enter once more.
func TestBarrier(t *testing.T) {
	var b barrier
	b.wait() // for nobody
	inside := b.enter()
	var over [2]chan struct{}
	for i := range over {
		over[i] = make(chan struct{})
		go func() {
			b.wait()
			close(over[i])
		}()
		time.Sleep(5 * time.Millisecond)
		b.enter().Done() // once more, though somebody waits
	}
	select {
	case <-over[0]:
		t.Fatal("the first wait is over, though one is inside")
	case <-over[1]:
		t.Fatal("the second wait is over, though one is inside who had entered before it")
	default:
	}
	later := b.enter()
	inside.Done()
	<-over[0]
	later.Done()
	<-over[1]
}
