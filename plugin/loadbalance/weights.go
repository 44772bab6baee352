package loadbalance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// weights are the weights of addresses by owner, in wire form and lower case. They never change.
type weights map[string]map[netip.Addr]uint8

// defaultWeight is that of addresses that the file does not have.
const defaultWeight = 1

// weightFile is a file of weights that is read again when it was changed.
type weightFile struct {
	path  string
	every time.Duration // 0: never

	current atomic.Pointer[weights]
	seen    bool              // load has read a file; this and sum are for load alone
	sum     [sha256.Size]byte // of what was read last
}

var errOpen = errors.New("weight file open error")

// load reads the file if it is not what was read last, and reports whether it was. What was known stays on an error.
func (f *weightFile) load() (bool, error) {
	if f.seen { // a pipe is read at the start only
		if err := stamp.NoPipe(f.path); err != nil {
			return false, fmt.Errorf("%w: %w", errOpen, err)
		}
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errOpen, err)
	}
	sum := sha256.Sum256(text)
	if f.seen && sum == f.sum {
		return false, nil
	}
	f.seen, f.sum = true, sum // a file with faults is complained of once
	parsed, err := parseWeights(text, f.path)
	if err != nil {
		return false, err
	}
	f.current.Store(&parsed)
	return true, nil
}

// watch looks at the file from time to time until stop is closed.
func (f *weightFile) watch(stop <-chan struct{}) {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			f.reload()
		}
	}
}

func (f *weightFile) reload() {
	switch changed, err := f.load(); {
	case errors.Is(err, errOpen):
		f.warn(err)
	case err != nil:
		log.Errorf("Failed to reload weight file %s, the former weights stay: %v", f.path, err)
	case changed:
		log.Infof("Successfully reloaded weight file %s", f.path)
	}
}

// warn tells that the file could not be opened, and will be tried again. The line is one that operators look for; why it could not is
// for those who debug.
func (f *weightFile) warn(why error) {
	log.Warningf("Failed to open weight file:%v. Will try again in %v", errOpen, f.every)
	log.Debug(why)
}

// choose puts one of the addresses to the front, each as likely as its weight says.
func (f *weightFile) choose(items []item, s source) {
	known := f.current.Load()
	if known == nil {
		known = new(weights)
	}
	sum := 0
	for _, i := range items {
		sum += known.of(i, s)
	}
	n := rand.IntN(sum)
	for k, i := range items {
		if n -= known.of(i, s); n < 0 {
			items[0], items[k] = items[k], items[0]
			return
		}
	}
}

func (w weights) of(i item, s source) int {
	if len(w) > 0 {
		if n, ok := w[string(s.owner(i.at))][s.addr(i.at)]; ok {
			return int(n)
		}
	}
	return defaultWeight
}

// parseWeights reads lines with a name, each followed by lines with an address and its weight. Comments begin with #.
func parseWeights(text []byte, file string) (weights, error) {
	all := weights{}
	var at map[netip.Addr]uint8
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		switch f := strings.Fields(string(line)); len(f) {
		case 0:
		case 1:
			name, err := wire.LowerName(f[0])
			if err != nil || !isDomain(f[0]) {
				return nil, fmt.Errorf("wrong domain name:%q in weight file %s. (Maybe a missing weight value?)", f[0], file)
			}
			if at = all[string(name)]; at == nil {
				at = map[netip.Addr]uint8{}
				all[string(name)] = at
			}
		case 2:
			addr, err := netip.ParseAddr(f[0])
			if err != nil {
				return nil, fmt.Errorf("wrong IP address:%q in weight file %s", f[0], file)
			}
			n, err := strconv.ParseUint(f[1], 10, 8)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("wrong weight value:%q in weight file %s", f[1], file)
			}
			if at == nil {
				return nil, fmt.Errorf("missing domain name in weight file %s", file)
			}
			at[addr.Unmap()] = uint8(n)
		default:
			return nil, fmt.Errorf("could not parse weight line:%q in weight file %s", bytes.TrimSpace(line), file)
		}
	}
	return all, nil
}

// isDomain tells names from addresses that lack their weight.
func isDomain(s string) bool {
	_, err := netip.ParseAddr(s)
	return err != nil
}
