//go:build linux

package quicconn

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/test/clients"
)

// twin is another descriptor of a socket.
func twin(t *testing.T, p *net.UDPConn) net.PacketConn {
	t.Helper()
	file, err := p.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	other, err := net.FilePacketConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// passes reports whether packets of a socket are passed on.
func passes(p net.PacketConn) bool { return p.(*socket).after.Load() != nil }

// While the process before waits for a slow query, who connects is served by the process after, and what that client
// and the slow one send goes to whom it is for. A process that is only just begun hands on in its turn.
func TestHandover(t *testing.T) {
	p, e := coretest.ListenUDP(t), newEcho()
	socket, passed := Packets(nonblock.Packets(p), "quic://a", nil)
	if passed {
		t.Fatal("there is no process before")
	}
	first := serviceFor(t)
	q, err := Listen(first, socket, socket, codes)
	if err != nil {
		t.Fatal(err)
	}
	stop := coretest.Serving(t, q, func() error { return q.Serve(first, e.serve) })
	c := dial(t, addrOf(q))
	slow := said(t, c, "slow")
	<-e.begun

	// Nobody tells when the process before has ended: only what it passes on can be read.
	ExpectFrom(os.Getpid(), "quic://a")
	second, never := serviceFor(t), make(chan struct{})
	if socket, passed = Packets(nonblock.Packets(twin(t, p)), "quic://a", never); !passed {
		t.Fatal("nothing is passed on")
	}
	next, err := Listen(second, socket, socket, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, next, func() error { return next.Serve(second, newEcho().serve) })
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	eventually.Holds(t, "packets are passed on", func() bool { return passes(q.packets) })

	late := dial(t, addrOf(q))
	for range 3 {
		if got := said(t, late, "hello")(); got != answer(second, "hello") {
			t.Errorf("got %s", got)
		}
	}
	select {
	case err := <-stopped:
		t.Fatal("the process before has ended", err)
	default:
	}
	close(e.slow)
	if got := slow(); got != answer(first, "slow") {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for _, c := range []string{"the client from before", "a new one"} {
		if c == "a new one" {
			late = dial(t, addrOf(q))
		}
		if got := said(t, late, "hello")(); got != answer(second, "hello") {
			t.Errorf("%s, at the end of the process before: got %s", c, got)
		}
	}
}

// A process that gets nothing of the one before reads the socket when that has ended.
func TestNoHandover(t *testing.T) {
	p, gone := coretest.ListenUDP(t), make(chan struct{})
	ExpectFrom(os.Getppid(), "quic://b")
	socket, _ := Packets(nonblock.Packets(p), "quic://b", gone)
	s := serviceFor(t)
	q, err := Listen(s, socket, socket, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, q, func() error { return q.Serve(s, newEcho().serve) })
	got := make(chan string, 1)
	go func() { got <- said(t, dial(t, addrOf(q)), "hello")() }()
	select {
	case <-got:
		t.Error("two processes read the socket")
	case <-time.After(50 * time.Millisecond):
	}
	close(gone)
	if got := <-got; got != answer(s, "hello") {
		t.Errorf("got %s", got)
	}
}

// A process that ends before the one before it does waits for that, so that the one after it does not read beside it.
func TestHandoverInTurn(t *testing.T) {
	p, gone := coretest.ListenUDP(t), make(chan struct{})
	ExpectFrom(os.Getppid(), "quic://c")
	socket, _ := Packets(nonblock.Packets(p), "quic://c", gone)
	s := serviceFor(t)
	q, err := Listen(s, socket, socket, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(s, newEcho().serve) })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	q.awaitBefore(over) // for longer than it has for its end it does not wait
	stopped := make(chan error, 1)
	go func() { stopped <- end() }()
	select {
	case <-stopped:
		t.Error("it has closed the socket, which is a sign to the next process")
	case <-time.After(300 * time.Millisecond):
	}
	close(gone)
	select {
	case <-stopped:
	case <-time.After(clients.AskTime):
		t.Error("it has not ended")
	}
}

// What is for whom is told by the header.
func TestMade(t *testing.T) {
	own := ids{0xAB, 0xCD, 0xEF}
	id, _ := own.GenerateConnectionID()
	theirs, _ := ids{0xAB, 0xCD, 0xEE}.GenerateConnectionID()
	long := func(first byte, version byte, id []byte, rest ...byte) []byte {
		return append(append([]byte{first, 0, 0, 0, version, byte(len(id))}, id...), rest...)
	}
	for name, tc := range map[string]struct {
		packet []byte
		want   bool
	}{
		"nothing":                         {nil, false},
		"short":                           {append([]byte{0x40}, id.Bytes()...), true},
		"short, of another process":       {append([]byte{0x40}, theirs.Bytes()...), false},
		"short, cut":                      {[]byte{0x40, 0xAB, 0xCD}, false},
		"handshake":                       {long(0xE0, 1, id.Bytes(), 0), true},
		"handshake, of another process":   {long(0xE0, 1, theirs.Bytes(), 0), false},
		"initial, for the id of a server": {long(0xC0, 1, id.Bytes(), 2, 1, 2, 0, 9), true},
		"initial, with a token":           {long(0xC0, 1, id.Bytes(), 2, 1, 2, 9, 9), true},
		"initial, from nobody":            {long(0xC0, 1, []byte{0xAB, 0xCD, 0xEF, 4, 5, 6, 7, 8}, 0, 0), false},
		"long, cut":                       {[]byte{0xC0, 0, 0, 0, 1, 7}, false},
		"long, cut behind the id":         {long(0xC0, 1, id.Bytes()), true},
		"long, cut before the token":      {long(0xC0, 1, id.Bytes(), 200, 1), true},
	} {
		if got := own.made(tc.packet); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Whoever comes again with a token, for an id of a server that has asked for that, is for the next one. One whose handshake
// goes on with this one has the token in his packets, too.
func TestComesAgain(t *testing.T) {
	p := coretest.ListenUDP(t)
	packets, _ := Packets(nonblock.Packets(p), "quic://f", nil)
	s := serviceFor(t)
	q, err := Listen(s, packets, packets, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, q, func() error { return q.Serve(s, newEcho().serve) })
	near, far := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := q.arrive(ctx, &quic.ClientInfo{RemoteAddr: near}); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", handoverAt("quic://f", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	q.passOn()
	after := packets.(*socket).after.Load()
	if after == nil {
		t.Fatal("nothing is passed on")
	}
	id, _ := q.ids.GenerateConnectionID()
	initial := func(version uint32, first byte, token ...byte) []byte {
		b := binary.BigEndian.AppendUint32([]byte{first}, version)
		b = append(append(append(b, idLength), id.Bytes()...), 2, 1, 2, byte(len(token)))
		return append(append(b, token...), 9)
	}
	for name, tc := range map[string]struct {
		packet []byte
		from   net.Addr
		stays  int
	}{
		"comes again":              {initial(1, 0xC0, 8, 8), far, 0},
		"comes again, version 2":   {initial(uint32(quic.Version2), 0xD0, 8, 8), far, 0},
		"goes on":                  {initial(1, 0xC0, 8, 8), near, 1},
		"goes on, version 2":       {initial(uint32(quic.Version2), 0xD0, 8, 8), near, 1},
		"no token":                 {initial(1, 0xC0), far, 1},
		"handshake":                {initial(1, 0xE0, 8, 8), far, 1},
		"short":                    {append([]byte{0x40}, id.Bytes()...), far, 1},
		"short, cut":               {append([]byte{0x40}, id.Bytes()[:3]...), far, 1},
		"cut behind the id":        {initial(1, 0xC0)[:1+4+1+idLength], far, 1},
		"cut before the token":     {initial(1, 0xC0)[:1+4+1+idLength+3], far, 1},
		"comes again, of another":  {append([]byte{0xC0, 0, 0, 0, 1, 8}, make([]byte, 20)...), near, 0},
		"shorter than any version": {[]byte{0xC0, 0}, near, 0},
	} {
		ms := []ipv4.Message{{Buffers: [][]byte{tc.packet}, N: len(tc.packet), Addr: tc.from}}
		if got := after.pick(ms); got != tc.stays {
			t.Errorf("%s: %d stay, want %d", name, got, tc.stays)
		}
	}
}

// Packets are passed on to processes of the same user only, whoever listens at the name.
func TestHandoverToAnotherUser(t *testing.T) {
	l, err := net.ListenUnix("unix", handoverAt("quic://g", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	packets, _ := Packets(nonblock.Packets(coretest.ListenUDP(t)), "quic://g", nil)
	s := packets.(*socket)
	defer s.Close()
	thisUser = func() int { return os.Geteuid() + 1 }
	defer func() { thisUser = os.Geteuid }()
	if s.passOn(ids{}, nil); passes(s) {
		t.Error("they are passed on to another user")
	}
	thisUser = os.Geteuid
	if s.passOn(ids{}, nil); !passes(s) {
		t.Error("they are not passed on to the same user")
	}
}

// A transport that still waits for what the one before in its process passes on, and has to end, does not pass on
// packets to itself.
func TestHandoverToItself(t *testing.T) {
	ExpectFrom(os.Getpid(), "quic://h")
	packets, passed := Packets(nonblock.Packets(coretest.ListenUDP(t)), "quic://h", nil)
	s := packets.(*socket)
	defer s.Close()
	if s.passOn(ids{}, nil); !passed || passes(s) {
		t.Errorf("passed %v, passes %v", passed, passes(s))
	}
}

// Packets that stay keep their order and all that was read with them, in the buffers that they are looked for in.
func TestPick(t *testing.T) {
	l, err := net.ListenUnix("unix", handoverAt("quic://d", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialUnix("unix", nil, handoverAt("quic://d", 1))
	if err != nil {
		t.Fatal(err)
	}
	h := &handedOn{packets: make(chan frame, maxPassed), over: make(chan struct{})}
	go h.run(l, nil, nil)
	pass := &passing{conn: conn, own: ids{1, 2, 3}}
	var ms []ipv4.Message
	for i, first := range []byte{9, 1, 9, 1} {
		b, oob := make([]byte, 64), make([]byte, 16)
		n, nn := copy(b, []byte{0x40, first, 2, 3, byte(i)}), copy(oob, []byte{byte(10 * i)})
		ms = append(ms, ipv4.Message{Buffers: [][]byte{b}, OOB: oob, N: n, NN: nn, Addr: &net.UDPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: i}})
	}
	if n := pass.pick(ms); n != 2 {
		t.Fatalf("%d stay", n)
	}
	conn.Close()
	<-h.over
	for i, want := range []int{1, 3, 0, 2} {
		m := &ms[i]
		if i >= 2 {
			if f := <-h.packets; f.into(m) != 1 {
				t.Fatalf("no packet %d", want)
			}
		}
		from := m.Addr.(*net.UDPAddr)
		if b := m.Buffers[0][:m.N]; b[4] != byte(want) || m.NN != 1 || m.OOB[0] != byte(10*want) || from.Port != want || from.IP.To4()[3] != byte(want) {
			t.Errorf("%d: %x, %x, from %s, want %d", i, b, m.OOB[:m.NN], from, want)
		}
	}
}

// Packets that the transport after is too busy for are dropped, each as a whole; it gets those that come later.
func TestBusyHandover(t *testing.T) {
	l, err := net.ListenUnix("unix", handoverAt("quic://e", 1))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUnix("unix", nil, handoverAt("quic://e", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetWriteBuffer(1 << 16)
	pass := &passing{conn: conn, own: ids{1, 2, 3}}
	packet := func(n uint16) []ipv4.Message {
		b := binary.BigEndian.AppendUint16(make([]byte, 1200), n)
		return []ipv4.Message{{Buffers: [][]byte{b}, N: len(b), Addr: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}}}
	}
	const many = 300
	for n := range uint16(many) {
		if pass.pick(packet(n)) != 0 {
			t.Fatalf("packet %d was not passed on", n)
		}
	}
	if len(pass.rest) == 0 {
		t.Fatal("there was room for all")
	}
	h := &handedOn{packets: make(chan frame), over: make(chan struct{})}
	go h.run(l, nil, nil)
	go func() {
		for range 1000 { // the first of them may come before there is room
			pass.pick(packet(many))
			time.Sleep(time.Millisecond)
		}
		conn.Close()
	}()
	last, came := -1, 0
	for f := range h.packets {
		if len(f.packet) != 1202 {
			t.Fatalf("a packet of %d octets", len(f.packet))
		}
		n := int(binary.BigEndian.Uint16(f.packet[1200:]))
		if n < last {
			t.Fatalf("%d after %d", n, last)
		}
		last = n
		if came++; n == many {
			break
		}
	}
	if last != many || came >= many {
		t.Errorf("%d packets, the last is %d", came, last)
	}
}
