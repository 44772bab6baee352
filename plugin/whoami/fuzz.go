//go:build gofuzz

package whoami

import "github.com/coredns/coredns/plugin/pkg/fuzz"

// Fuzz serves data as a query.
func Fuzz(data []byte) int { return fuzz.Do(Whoami{}, data) }
