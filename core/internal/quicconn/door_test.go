package quicconn

import (
	"testing"
	"testing/synctest"
)

// Who comes while the door is held waits, and comes in when it is opened, but not when it is closed.
func TestDoor(t *testing.T) { synctest.Test(t, testDoor) }

func testDoor(t *testing.T) {
	d := newDoor()
	if !d.pass() || !d.hold() {
		t.Error("who goes through is not seen")
	}
	d.in()
	if d.hold() {
		t.Error("who has arrived is seen as going through")
	}
	passed := make(chan bool)
	come := func() { passed <- d.pass() }
	go come()
	synctest.Wait() // he waits before it
	select {
	case <-passed:
		t.Error("a door that is held lets somebody in")
	default:
	}
	d.open()
	if !<-passed {
		t.Error("an open door keeps somebody out")
	}
	d.in()
	d.hold()
	go come()
	synctest.Wait()
	d.close()
	if <-passed || d.pass() {
		t.Error("a closed door lets somebody in")
	}
}
