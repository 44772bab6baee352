package edns_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/edns"
)

// query returns a question with an OPT record of the version given, or with none if version is negative.
func query(version int) *dns.Msg {
	m := new(dns.Msg).SetQuestion("Example.ORG.", dns.TypeA)
	m.Id = 4711
	if version >= 0 {
		m.SetEdns0(4096, true)
		m.IsEdns0().SetVersion(uint8(version))
	}
	return m
}

func TestVersionZeroPasses(t *testing.T) {
	for _, version := range []int{-1, 0} {
		if reply, err := edns.Version(query(version)); reply != nil || err != nil {
			t.Errorf("version %d: got %v, %v, want nothing", version, reply, err)
		}
	}
}

func TestVersionOtherIsRefused(t *testing.T) {
	for _, version := range []int{1, 255} {
		req := query(version)
		asked := req.String()
		reply, err := edns.Version(req)
		if err == nil || err.Error() != "EDNS0 BADVERS" {
			t.Fatalf("version %d: got error %v", version, err)
		}
		if req.String() != asked {
			t.Errorf("version %d: the request was changed to\n%v", version, req)
		}

		// What counts is what the client reads.
		wire, err := reply.Pack()
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(wire); err != nil {
			t.Fatal(err)
		}
		if m.Rcode != dns.RcodeBadVers || m.Id != 4711 || !m.Response || !m.RecursionDesired || m.Authoritative {
			t.Errorf("version %d: got header %v", version, m.MsgHdr)
		}
		if len(m.Question) != 1 || m.Question[0] != req.Question[0] {
			t.Errorf("version %d: got question %v", version, m.Question)
		}
		opt := m.IsEdns0()
		if opt == nil {
			t.Fatalf("version %d: no OPT record", version)
		}
		if opt.Version() != 0 || opt.Do() || opt.UDPSize() != edns.DefaultSize || len(opt.Option) > 0 {
			t.Errorf("version %d: got %v", version, opt)
		}
	}
}

func TestVersionWithoutQuestion(t *testing.T) {
	req := query(1)
	req.Question = nil
	if reply, err := edns.Version(req); err == nil || len(reply.Question) != 0 {
		t.Errorf("got %v, %v", reply, err)
	}
}

// optionRuns counts the runs of TestSupportedOption in a process: what is registered stays so, and each has codes of
// its own.
var optionRuns atomic.Uint32

func TestSupportedOption(t *testing.T) {
	first := uint16(1000 + 200*optionRuns.Add(1)%25000)
	for _, code := range []uint16{first, first + 63, 0, 65535} {
		if code >= first && code < first+100 && edns.SupportedOption(code) {
			t.Errorf("%d is supported before it was registered", code)
		}
		edns.SetSupportedOption(code)
		edns.SetSupportedOption(code)
		if !edns.SupportedOption(code) {
			t.Errorf("%d is not supported", code)
		}
	}
	for _, code := range []uint16{first - 1, first + 1, first + 64, 1, 65534} {
		if edns.SupportedOption(code) {
			t.Errorf("%d is supported, but was never registered", code)
		}
	}
}

func TestSupportedOptionConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for i := range uint16(64) {
		wg.Go(func() { edns.SetSupportedOption(30000 + i) })
	}
	wg.Wait()
	for i := range uint16(64) {
		if !edns.SupportedOption(30000 + i) {
			t.Errorf("%d was lost", 30000+i)
		}
	}
}

func TestSize(t *testing.T) {
	for _, tc := range []struct {
		proto      string
		size, want uint16
	}{
		{"tcp", 0, 65535},
		{"tcp", 512, 65535},
		{"tcp", 65535, 65535},
		{"udp", 0, 512},
		{"udp", 511, 512},
		{"udp", 512, 512},
		{"udp", 1232, 1232},
		{"udp", 65535, 65535},
		{"", 100, 512},
	} {
		if got := edns.Size(tc.proto, tc.size); got != tc.want {
			t.Errorf("%s %d: got %d, want %d", tc.proto, tc.size, got, tc.want)
		}
	}
}
