package kubernetes

// nameKind says what kind of thing a name would stand for if that exists.
type nameKind uint8

const (
	noName      nameKind = iota // not a name of the specification
	branchName                  // svc.ZONE, pod.ZONE: they exist whatever there is below
	versionName                 // dns-version.ZONE
	serversName                 // ns.dns.ZONE: the addresses of the server itself
	spaceName                   // NAMESPACE.svc.ZONE, NAMESPACE.pod.ZONE
	serviceName                 // SERVICE.NAMESPACE.svc.ZONE and what stands below it
	podName                     // ADDRESS.NAMESPACE.pod.ZONE
)

// direction is how endpoints are chosen by their topology zone.
type direction uint8

const (
	anywhere direction = iota
	pin                // those of the zone alone
	prefer             // those of the zone, or all if there are none
)

// name is what a query's name spells. Its labels are parts of that, in lower case; those that are not there are nil.
type name struct {
	kind nameKind
	pods bool // below "pod"

	namespace, service []byte
	endpoint, cluster  []byte
	port, protocol     []byte // without underscore; empty stands for any

	direction direction
	topology  []byte // the topology zone: labels in wire form, without a name's last octet
}

// bare reports whether a service is meant as such, not a part of it.
func (n *name) bare() bool {
	return n.endpoint == nil && n.port == nil && n.protocol == nil && n.direction == anywhere
}

// labels are a name's labels before its zone.
type labels struct {
	name []byte
	at   [128]uint8 // offset of each
	n    int
}

// split finds the labels of name, up to the offset at which its zone begins. The name is set before, lest it escape.
func (l *labels) split(zone int) {
	for i := 0; i < zone; i += int(l.name[i]) + 1 {
		l.at[l.n] = uint8(i)
		l.n++
	}
}

// label returns label i, counted from the left.
func (l *labels) label(i int) []byte {
	from := int(l.at[i])
	return l.name[from+1 : from+1+int(l.name[from])]
}

// parse reads a lower name in wire form whose zone begins at the offset zone, and is not the zone's own name.
//
//	ADDRESS.NAMESPACE.pod
//	SERVICE.NAMESPACE.svc
//	ENDPOINT.SERVICE.NAMESPACE.svc
//	_PORT._PROTOCOL.SERVICE.NAMESPACE.svc
//	ENDPOINT.CLUSTER.SERVICE.NAMESPACE.svc           in a zone of imported services
//	TOPOLOGY.pin._zone.SERVICE.NAMESPACE.svc         or prefer, in place of pin; with the option zonal
func parse(lower []byte, zone int, multicluster, zonal bool) (n name) {
	l := labels{name: lower}
	l.split(zone)
	switch last := string(l.label(l.n - 1)); {
	case last == Svc:
	case last == Pod:
		n.pods = true
	case last == "dns-version" && l.n == 1:
		n.kind = versionName
		return n
	case last == "dns" && l.n == 2 && string(l.label(0)) == "ns":
		n.kind = serversName
		return n
	default:
		return n
	}
	switch {
	case l.n == 1:
		n.kind = branchName
		return n
	case l.n == 2:
		n.kind = spaceName
	case n.pods && l.n == 3:
		n.kind = podName
	case n.pods:
		return n
	default:
		n.kind = serviceName
	}
	n.namespace = l.label(l.n - 2)
	if l.n > 2 {
		n.service = l.label(l.n - 3)
	}
	if l.n > 3 {
		return n.part(&l, l.n-3, multicluster, zonal)
	}
	return n
}

// part returns n with what stands before the service: the first count labels. If that means nothing, it is no name.
func (n name) part(l *labels, count int, multicluster, zonal bool) name {
	switch {
	case multicluster && count == 2 && !(underscored(l.label(0)) && underscored(l.label(1))):
		n.endpoint, n.cluster = l.label(0), l.label(1)
	case multicluster && count == 1:
		n.kind = noName // an endpoint without its cluster
	case count == 1:
		n.endpoint = l.label(0)
	case count == 2:
		n.port, n.protocol = stripped(l.label(0)), stripped(l.label(1))
	case zonal && !multicluster && string(l.label(count-1)) == "_zone":
		n.direction, n.topology = l.directed(count - 2)
		if n.direction == anywhere {
			n.kind = noName
		}
	default:
		n.kind = noName
	}
	return n
}

// directed reads TOPOLOGY.pin or TOPOLOGY.prefer, of which the last word is label i.
func (l *labels) directed(i int) (d direction, topology []byte) {
	switch string(l.label(i)) {
	case "pin":
		d = pin
	case "prefer":
		d = prefer
	}
	return d, l.name[:l.at[i]]
}

func underscored(label []byte) bool { return label[0] == '_' }

func stripped(label []byte) []byte {
	if underscored(label) {
		return label[1:]
	}
	return label
}

// isTopology reports whether labels in wire form spell the words of zone, which stand between dots.
func isTopology(labels []byte, zone string) bool {
	for len(labels) > 0 {
		n := int(labels[0])
		if len(zone) < n || zone[:n] != string(labels[1:1+n]) {
			return false
		}
		labels, zone = labels[1+n:], zone[n:]
		if len(labels) == 0 {
			break
		}
		if zone == "" || zone[0] != '.' {
			return false
		}
		zone = zone[1:]
	}
	return zone == ""
}
