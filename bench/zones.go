package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// Zones of the workloads. What the upstream answers for is in upstream.go.
const (
	smallOrigin   = "small.example.org"
	largeOrigin   = "large.example.org"
	hitOrigin     = "hit.example.net"
	missOrigin    = "miss.example.net"
	clusterOrigin = "cluster.local"
	outsideOrigin = "outside.example.net"
	searchOrigin  = "compute.internal" // the search domain of the machine; the upstream has no name in it
)

const clusterNamespaces = 50

const apex = `$ORIGIN %s.
$TTL 3600
@ IN SOA ns1 host 2026112101 7200 3600 1209600 300
@ IN NS ns1
ns1 IN A 192.0.2.53
`

func flatName(i int) string { return "h" + strconv.Itoa(i) }

func hasAAAA(i int) bool { return i%2 == 0 }

// serviceName is relative to clusterOrigin.
func serviceName(i int) string { return "svc" + strconv.Itoa(i) + "." + namespace(i) + ".svc" }

func namespace(i int) string { return "ns" + strconv.Itoa(i%clusterNamespaces) }

// flatZone writes a zone with two records a name: A on each, AAAA on every second, MX
// and TXT each on every fourth.
func flatZone(w io.Writer, origin string, names int) error {
	if _, err := fmt.Fprintf(w, apex, origin); err != nil {
		return err
	}
	return flatRecords(w, names)
}

// flatRecords writes the names of a flatZone.
func flatRecords(w io.Writer, names int) error {
	out := bufio.NewWriter(w)
	for i := range names {
		name := flatName(i)
		fmt.Fprintf(out, "%s A %s\n", name, address(i))
		if hasAAAA(i) {
			fmt.Fprintf(out, "%s AAAA 2001:db8::%x:%x\n", name, i>>16, i&0xffff)
		}
		switch i % 4 {
		case 1:
			fmt.Fprintf(out, "%s MX 10 %s\n", name, flatName(i*7%names))
		case 3:
			fmt.Fprintf(out, "%s TXT \"id=%d and some text of a usual length\"\n", name, i)
		}
	}
	return out.Flush()
}

// clusterZone writes what a cluster's zone looks like: services in namespaces under svc.
func clusterZone(w io.Writer, services int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, apex, clusterOrigin)
	for i := range services {
		fmt.Fprintf(out, "%s 30 A %s\n", serviceName(i), address(1<<16|i))
	}
	return out.Flush()
}

// address is in 10.0.0.0/8.
func address(i int) string {
	return "10." + strconv.Itoa(i>>16&255) + "." + strconv.Itoa(i>>8&255) + "." + strconv.Itoa(i&255)
}
