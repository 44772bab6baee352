package lean

import (
	"encoding/json"
	"sort"
)

// The JSON forms: structs with nothing but the fields that are needed.

type jsonMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp json.RawMessage   `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

type jsonPort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     *int32 `json:"port"`
}

func (m *Meta) fromJSON(j *jsonMeta) {
	m.Name, m.Namespace = []byte(j.Name), []byte(j.Namespace)
	m.ResourceVersion = []byte(j.ResourceVersion)
	m.Deleting = j.DeletionTimestamp != nil && string(j.DeletionTimestamp) != "null"
	m.Labels = pairs(m.Labels, j.Labels)
	m.Annotations = pairs(m.Annotations, j.Annotations)
}

// pairs appends the entries of a map in the order of their keys, as protobuf has them.
func pairs(to []Pair, from map[string]string) []Pair {
	for k, v := range from {
		to = append(to, Pair{[]byte(k), []byte(v)})
	}
	sort.Slice(to, func(a, b int) bool { return string(to[a].Key) < string(to[b].Key) })
	return to
}

func ports(to []Port, from []jsonPort) []Port {
	for _, p := range from {
		n := int32(NoPort)
		if p.Port != nil {
			n = *p.Port
		}
		to = append(to, Port{[]byte(p.Name), []byte(p.Protocol), n})
	}
	return to
}

// readJSON reads an object into its form, of which from is the metadata. Of one that has a field of the wrong type the metadata is
// read all the same, so that it can be told what that was.
func (m *Meta) readJSON(b []byte, form any, from *jsonMeta) error {
	err := json.Unmarshal(b, form)
	m.fromJSON(from)
	return err
}

func (n *Namespace) json(b []byte) error {
	var j struct {
		Metadata jsonMeta `json:"metadata"`
	}
	return n.Meta.readJSON(b, &j, &j.Metadata)
}

func (s *Service) json(b []byte) error {
	var j struct {
		Metadata jsonMeta `json:"metadata"`
		Spec     struct {
			Type         string     `json:"type"`
			ClusterIP    string     `json:"clusterIP"`
			ClusterIPs   []string   `json:"clusterIPs"`
			ExternalIPs  []string   `json:"externalIPs"`
			ExternalName string     `json:"externalName"`
			Ports        []jsonPort `json:"ports"`
		} `json:"spec"`
		Status struct {
			LoadBalancer struct {
				Ingress []struct {
					IP       string `json:"ip"`
					Hostname string `json:"hostname"`
				} `json:"ingress"`
			} `json:"loadBalancer"`
		} `json:"status"`
	}
	if err := s.Meta.readJSON(b, &j, &j.Metadata); err != nil {
		return err
	}
	s.Type, s.ExternalName = []byte(j.Spec.Type), []byte(j.Spec.ExternalName)
	s.clusterIP = []byte(j.Spec.ClusterIP)
	for _, ip := range j.Spec.ClusterIPs {
		s.cluster([]byte(ip))
	}
	for _, ip := range j.Spec.ExternalIPs {
		s.external([]byte(ip))
	}
	for _, i := range j.Status.LoadBalancer.Ingress {
		s.reach([]byte(i.IP), []byte(i.Hostname))
	}
	s.Ports = ports(s.Ports, j.Spec.Ports)
	s.finish()
	return nil
}

func (s *EndpointSlice) json(b []byte) error {
	var j struct {
		Metadata  jsonMeta `json:"metadata"`
		Endpoints []struct {
			Addresses  []string `json:"addresses"`
			Conditions struct {
				Ready *bool `json:"ready"`
			} `json:"conditions"`
			Hostname  string `json:"hostname"`
			NodeName  string `json:"nodeName"`
			Zone      string `json:"zone"`
			TargetRef struct {
				Name string `json:"name"`
			} `json:"targetRef"`
		} `json:"endpoints"`
		Ports []jsonPort `json:"ports"`
	}
	if err := s.Meta.readJSON(b, &j, &j.Metadata); err != nil {
		return err
	}
	s.Ports = ports(s.Ports, j.Ports)
	for _, e := range j.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			continue
		}
		s.addrs = s.addrs[:0]
		for _, a := range e.Addresses {
			s.addrs = appendAddr(s.addrs, []byte(a))
		}
		s.add(Endpoint{Hostname: []byte(e.Hostname), Node: []byte(e.NodeName), Zone: []byte(e.Zone), Target: []byte(e.TargetRef.Name)})
	}
	return nil
}

func (p *Pod) json(b []byte) error {
	var j struct {
		Metadata jsonMeta `json:"metadata"`
		Status   struct {
			Phase  string `json:"phase"`
			PodIP  string `json:"podIP"`
			PodIPs []struct {
				IP string `json:"ip"`
			} `json:"podIPs"`
		} `json:"status"`
	}
	if err := p.Meta.readJSON(b, &j, &j.Metadata); err != nil {
		return err
	}
	p.phase([]byte(j.Status.Phase))
	p.own([]byte(j.Status.PodIP))
	for _, ip := range j.Status.PodIPs {
		p.own([]byte(ip.IP))
	}
	return nil
}

func (s *ServiceImport) json(b []byte) error {
	var j struct {
		Metadata jsonMeta `json:"metadata"`
		Spec     struct {
			Type  string     `json:"type"`
			IPs   []string   `json:"ips"`
			Ports []jsonPort `json:"ports"`
		} `json:"spec"`
	}
	if err := s.Meta.readJSON(b, &j, &j.Metadata); err != nil {
		return err
	}
	s.Headless = j.Spec.Type == "Headless"
	for _, ip := range j.Spec.IPs {
		s.IPs = appendAddr(s.IPs, []byte(ip))
	}
	s.Ports = ports(s.Ports, j.Spec.Ports)
	return nil
}
