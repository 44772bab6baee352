package dnsserver

import (
	"net"
	"slices"
)

// Labels is the values of the label server of a block's metrics, each once: the addresses of the servers that it is
// served by. keys are those of the block, as its setup functions get them, and cfg is the Config that they get.
// ListenHosts may change until the block is set up.
func Labels(keys []string, cfg *Config) (labels []string) {
	for _, key := range keys {
		proto, _, port, err := SplitProtocolHostPort(key)
		if err != nil {
			continue // only in tests that have no keys in normal form
		}
		for _, host := range cfg.ListenHosts {
			if label := proto + "://" + net.JoinHostPort(host, port); !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	return labels
}
