package file

import (
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// TransferLimits is the limits of transfers that nobody has set: what one brings fits into a quarter of the memory that
// the process may use.
func TransferLimits() fetch.Limits { return fetch.LimitsFor(available()) }

// available is the octets of memory that the process may use: as it was told, and no more than the machine has.
func available() int64 { return min(memory.Limit(), installed()) }
