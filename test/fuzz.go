//go:build gofuzz

package test

// Fuzz starts a server with data as its Corefile.
func Fuzz(data []byte) int {
	i, err := CoreDNSServer(string(data))
	if err != nil {
		return 0
	}
	CoreDNSServerStop(i)
	return 1
}
