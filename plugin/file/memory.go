package file

import (
	"math"

	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// TransferLimits is the limits of transfers that nobody has set: what one brings fits into a quarter of the memory that
// the process may use.
func TransferLimits() fetch.Limits { return fetch.LimitsFor(available()) }

// available is the octets of memory that the process may use: as it was told, or else all that the machine has.
func available() int64 {
	if n := memory.Limit(); n < math.MaxInt64 {
		return n
	}
	return installed()
}
