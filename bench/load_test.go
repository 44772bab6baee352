package main

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

func testList() *queryList {
	l := warmQueries(hitOrigin, 50, rand.New(rand.NewPCG(1, 1)))
	l.add("www."+searchOrigin, typeA, nxDomain)
	l.add("mail."+hitOrigin, typeMX, noData)
	return l
}

func TestUDP(t *testing.T) {
	up, err := startUpstream(1, appendAnswer)
	if err != nil {
		t.Fatal(err)
	}
	l := testList()
	for _, rate := range []int{0, 4000} {
		got, took, err := load{
			port: up.port(), clients: 2, window: 40, rate: rate, length: time.Minute, limit: 200,
			queries: func(client int) source { return l.cursor(client, 2) },
		}.run()
		if err != nil || got.sent != 400 || got.answered != 400 || got.wrong != 0 || got.lost != 0 {
			t.Errorf("rate %d: %+v, %v", rate, got, err)
		}
		if got.rcodes[rcodeNXDomain] == 0 || got.rcodes[rcodeNoError] == 0 {
			t.Errorf("rate %d: rcodes %v", rate, got.rcodes)
		}
		if rate > 0 && (took < 90*time.Millisecond || len(got.waits) != 400) {
			t.Errorf("400 queries at %d a second took %v; %d waits", rate, took, len(got.waits))
		}
	}
	if err := up.stop(); err != nil {
		t.Error(err)
	}
}

// TestLoss: who is never answered has lost all and comes to an end.
func TestLoss(t *testing.T) {
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	got, took, err := load{
		port: silent.LocalAddr().(*net.UDPAddr).Port, clients: 1, window: 4, length: 10 * time.Millisecond,
		queries: func(int) source { return testList().cursor(0, 1) },
	}.run()
	if err != nil || got.sent != 4 || got.lost != 4 || got.answered != 0 || took != 10*time.Millisecond {
		t.Errorf("%+v in %v, %v", got, took, err)
	}
}

func TestTCP(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- answerStream(ln) }()
	l := testList()
	got, _, err := load{
		port: ln.Addr().(*net.TCPAddr).Port, tcp: true, clients: 1, window: 16, length: time.Minute, limit: 300,
		queries: func(int) source { return l.cursor(0, 1) },
	}.run()
	if err != nil || got.answered != 300 || got.wrong != 0 || got.lost != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	ln.Close()
	if err := <-ended; err != io.EOF {
		t.Error(err)
	}
}

// answerStream answers one connection; it cuts what it writes, for what comes in pieces.
func answerStream(ln net.Listener) error {
	conn, err := ln.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	buf := make([]byte, packetLen)
	for {
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return err
		}
		query := buf[:binary.BigEndian.Uint16(buf)]
		if _, err := io.ReadFull(conn, query); err != nil {
			return err
		}
		msg := appendAnswer([]byte{0, 0}, query)
		binary.BigEndian.PutUint16(msg, uint16(len(msg)-2))
		for _, part := range [][]byte{msg[:1], msg[1:20], msg[20:]} {
			if _, err := conn.Write(part); err != nil {
				return err
			}
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	up, err := startUpstream(1, appendAnswer)
	if err != nil {
		t.Fatal(err)
	}
	l := new(queryList)
	l.add("www."+hitOrigin, typeA, nxDomain) // exists
	got, _, err := load{
		port: up.port(), clients: 1, window: 1, length: time.Minute, limit: 3,
		queries: func(int) source { return l.cursor(0, 1) },
	}.run()
	if err != nil || got.answered != 3 || got.wrong != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := up.stop(); err != nil {
		t.Error(err)
	}
}

func TestFlight(t *testing.T) {
	f, begin := newFlight(2), time.Unix(1000, 0)
	a := f.launch(answer, begin)
	b := f.launch(noData, begin.Add(time.Second))
	if f.busy() != 2 || a == b {
		t.Fatalf("%d in flight, ids %d and %d", f.busy(), a, b)
	}
	if n := f.expire(begin.Add(time.Millisecond)); n != 1 || f.busy() != 1 {
		t.Errorf("%d expired, %d left", n, f.busy())
	}
	if _, ok := f.land(a); ok {
		t.Error("a lost query landed")
	}
	if again := f.launch(answer, begin); again == a {
		t.Error("the id of a lost query was used at once")
	}
	if _, ok := f.land(a); ok {
		t.Error("the answer to a lost query landed in place of another")
	}
	if s, ok := f.land(b); !ok || s.want != noData {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := f.land(b); ok {
		t.Error("landed twice")
	}
	full := newFlight(maxWindow)
	ids := map[uint16]bool{}
	for range maxWindow {
		ids[full.launch(answer, begin)] = true
	}
	if len(ids) != maxWindow {
		t.Errorf("%d ids", len(ids))
	}
}
