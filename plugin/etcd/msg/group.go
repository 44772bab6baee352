package msg

import "strings"

// Group returns the services of sx that belong together, in their order: those of the group of the service with the
// shortest key among those that have a group, and those without a group. All of sx comes back if no service has a group,
// or if those with the shortest key disagree. Keys are measured in elements. sx is not changed.
func Group(sx []Service) []Service {
	group, ok := leadingGroup(sx)
	if !ok {
		return sx
	}
	selected := make([]Service, 0, len(sx))
	for _, s := range sx {
		if s.Group == "" || s.Group == group {
			selected = append(selected, s)
		}
	}
	return selected
}

// leadingGroup returns the group of the shortest key, and whether there is one.
func leadingGroup(sx []Service) (group string, ok bool) {
	least := 0
	for _, s := range sx {
		if s.Group == "" {
			continue
		}
		depth := strings.Count(s.Key, "/")
		switch {
		case group == "" || depth < least:
			group, least, ok = s.Group, depth, true
		case depth == least && s.Group != group:
			ok = false
		}
	}
	return group, ok
}
