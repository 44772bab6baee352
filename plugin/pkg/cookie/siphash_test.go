package cookie

import "testing"

// The values of the SipHash paper, and of its reference code for inputs of all remainders.
func TestSipHash(t *testing.T) {
	var key Secret
	var in [15]byte
	for i := range key {
		key[i] = byte(i)
	}
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5} {
		if got := sipHash(&key, in[:n]); got != want {
			t.Errorf("%d octets: got %x, want %x", n, got, want)
		}
	}
}
