package transfer

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/miekg/dns"
)

// secondary answers notifications with rcodes, one after the other; below 0 it says nothing.
func secondary(t *testing.T, secrets map[string]string, rcodes ...int) (addr string, got func() []*dns.Msg) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []*dns.Msg
	s := &dns.Server{PacketConn: conn, TsigSecret: secrets, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if r.IsTsig() != nil && w.TsigStatus() != nil {
			return
		}
		all = append(all, r)
		rcode := rcodes[min(len(all), len(rcodes))-1]
		if rcode < 0 {
			return
		}
		m := new(dns.Msg).SetRcode(r, rcode)
		if k := r.IsTsig(); k != nil {
			m.SetTsig(k.Hdr.Name, k.Algorithm, 300, time.Now().Unix())
		}
		w.WriteMsg(m)
	})}
	started, done := make(chan struct{}), make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) } // one that has not started cannot be shut down
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() {
		s.Shutdown()
		<-done
	})
	return conn.LocalAddr().String(), func() []*dns.Msg {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// quickly makes tries short.
func quickly(t *testing.T) {
	old := tries
	tries = [...]time.Duration{150 * time.Millisecond, 150 * time.Millisecond, 150 * time.Millisecond}
	t.Cleanup(func() { tries = old })
}

func TestNotify(t *testing.T) {
	logtest.Capture(t)
	quickly(t)
	good, atGood := secondary(t, nil, 0)
	late, atLate := secondary(t, nil, -1, -1, 0)
	silent, atSilent := secondary(t, nil, -1)
	refusing, atRefusing := secondary(t, nil, dns.RcodeRefused)
	x := setupOf(t, fmt.Sprintf("transfer example.org {\nto * %s %s\nsource 127.0.0.1\n}\ntransfer example.net {\nto %s %s %s\n}", good, late, silent, refusing, good))
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if len(atGood()) != 1 || len(atLate()) != 3 {
		t.Errorf("notified %d and %d times", len(atGood()), len(atLate()))
	}
	m := atGood()[0]
	if m.Opcode != dns.OpcodeNotify || !m.Authoritative || m.Question[0].Qtype != dns.TypeSOA || m.Question[0].Name != "example.org." {
		t.Errorf("a notification: %v", m)
	}
	if len(m.Answer) != 0 { // nobody has the zone
		t.Errorf("a notification: %v", m)
	}
	x.Transferers = []Transferer{&channel{}, &source{v: version(t, uint32(1<<31+7))}}
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if all := atGood(); len(all) != 2 || len(all[1].Answer) != 1 || all[1].Answer[0].(*dns.SOA).Serial != 1<<31+7 {
		t.Errorf("notifications: %v", all)
	}
	x.Transferers = nil
	err := x.Notify("example.net.")
	if err == nil || len(strings.Split(err.Error(), "\n")) != 2 || !strings.Contains(err.Error(), fmt.Sprintf("notify for zone \"example.net.\" was not accepted by %q: rcode was \"REFUSED\"", refusing)) || !strings.Contains(err.Error(), fmt.Sprintf("notify for zone \"example.net.\" was not accepted by %q: \"i/o timeout\"", silent)) {
		t.Errorf("got %v", err)
	}
	if len(atGood()) != 3 || len(atRefusing()) != 1 || len(atSilent()) != 3 {
		t.Errorf("notified %d, %d and %d times", len(atGood()), len(atRefusing()), len(atSilent()))
	}
	if err := x.Notify("example.com."); err != nil {
		t.Error(err)
	}
	var nobody *Transfer
	nobody.NotifyLater("example.org.")
	nobody.Changed("example.org.", nil, nil)
	if err := nobody.Notify("example.org."); err != nil {
		t.Error(err)
	}
}

func TestNotifySigned(t *testing.T) {
	logtest.Capture(t)
	quickly(t)
	secrets := map[string]string{"key.example.org.": "c2VjcmV0LW9mLXRoZS10ZXN0"}
	addr, got := secondary(t, secrets, 0)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\ntsig key.example.org hmac-sha512\n}")
	x.findKey = keysOf(secrets)
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if all := got(); len(all) != 1 || all[0].IsTsig() == nil || all[0].IsTsig().Algorithm != dns.HmacSHA512 {
		t.Errorf("got %v", all)
	}
	x.findKey = keysOf(map[string]string{"key.example.org.": "b3RoZXI="})
	if err := x.Notify("example.org."); err == nil {
		t.Error("a notification with a wrong secret was accepted")
	}
}

// TestChangedNotifies: changes are told of in the background, those in a row once.
func TestChangedNotifies(t *testing.T) {
	out := logtest.Capture(t)
	quickly(t)
	addr, got := secondary(t, nil, 0, dns.RcodeServerFailure)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	v := version(t, 1)
	x.Changed("example.org.", nil, v)
	eventually.Holds(t, "a notify", func() bool { return len(got()) == 1 })
	x.Changed("example.org.", v, nil) // gone: nobody needs to know
	x.Changed("example.com.", nil, v)
	x.NotifyLater("example.org.")
	eventually.Holds(t, "a second one", func() bool { return len(got()) == 2 })
	out.Await(t, "Failed sending notifies: notify for zone")
	x.notify.stop()

	block := make(chan struct{})
	var mu sync.Mutex
	told := map[string]int{}
	n := newNotifier(nil, func(_ context.Context, zone string) {
		<-block
		mu.Lock()
		defer mu.Unlock()
		told[zone]++
	})
	for i := range 10 * maxNotifying {
		n.queue(fmt.Sprintf("z%d.", i%(2*maxNotifying)))
	}
	close(block)
	eventually.Holds(t, "all are told", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == 2*maxNotifying })
	notifiers{target{}: n}.stop()
	for zone, times := range told {
		if times > 2 { // it may have been begun with when it was queued again
			t.Errorf("%s: told %d times", zone, times)
		}
	}
}

// TestNotifyOfMany: of many zones that change at once a secondary is told at once, though another one says nothing.
func TestNotifyOfMany(t *testing.T) {
	logtest.Capture(t)
	good, got := secondary(t, nil, 0)
	silent, atSilent := secondary(t, nil, -1)
	x := setupOf(t, "transfer . {\nto "+silent+" "+good+"\n}")
	x.notify = x.newNotifiers(nil)
	defer func() { x.notify.stop() }()
	const zones = 5 * maxNotifying
	begun := time.Now()
	for i := range zones {
		x.NotifyLater(fmt.Sprintf("z%d.example.", i))
	}
	eventually.Holds(t, "a notify for each zone", func() bool { return len(got()) >= zones })
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := len(atSilent()); n > 2*maxNotifying {
		t.Errorf("one that does not answer is told of %d at once", n)
	}
}

// TestNotifyFailing: of a secondary that does not answer it is told each time, however often the zone changes meanwhile, and never that it
// was notified.
func TestNotifyFailing(t *testing.T) {
	out := logtest.Capture(t)
	quickly(t)
	log.D.Set()
	defer log.D.Clear()
	addr, got := secondary(t, nil, -1)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	defer func() { x.notify.stop() }()
	eventually.Holds(t, "two failures", func() bool {
		x.NotifyLater("example.org.")
		return strings.Count(out.String(), "[WARNING] plugin/transfer: Failed sending notifies: notify for zone") >= 2
	})
	if text := out.String(); len(got()) < 2*len(tries) || strings.Contains(text, "Sent notifies") {
		t.Errorf("asked %d times; logged %s", len(got()), text)
	}
}

// What comes back and is no answer to a notification, such as the notification itself, does not count as one.
func TestAnswersToNotify(t *testing.T) {
	for what, tc := range map[string]struct {
		answer func(m *dns.Msg)
		ok     bool
	}{
		"an answer":      {func(m *dns.Msg) { m.Response = true }, true},
		"an echo":        {func(*dns.Msg) {}, false},
		"another opcode": {func(m *dns.Msg) { m.Response, m.Opcode = true, dns.OpcodeQuery }, false},
	} {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			b := make([]byte, 512)
			n, from, err := conn.ReadFrom(b)
			m := new(dns.Msg)
			if err != nil || m.Unpack(b[:n]) != nil {
				return
			}
			tc.answer(m)
			if b, err := m.Pack(); err == nil {
				conn.WriteTo(b, from)
			}
		}()
		timeout := 200 * time.Millisecond // an answer that is none is not told of before
		if tc.ok {
			timeout = 10 * time.Second
		}
		_, err = exchange(t.Context(), new(dns.Client), new(dns.Msg).SetNotify("example.org."), conn.LocalAddr().String(), timeout)
		if (err == nil) != tc.ok || err != nil && err.Error() != "the answer is none to a notification" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNotifyEnds: the end of the server does not wait for secondaries that say nothing.
func TestNotifyEnds(t *testing.T) {
	logtest.Capture(t)
	addr, got := secondary(t, nil, -1)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	x.NotifyLater("example.org.")
	eventually.Holds(t, "a notify", func() bool { return len(got()) > 0 })
	begin := time.Now()
	x.notify.stop()
	if d := time.Since(begin); d > time.Second {
		t.Errorf("it took %s", d)
	}
}
