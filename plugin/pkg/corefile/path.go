package corefile

import "path/filepath"

// Below is the name of a file as an option has it, in the folder root if it is relative; root may be empty.
func Below(root, name string) string {
	if filepath.IsAbs(name) || root == "" {
		return name
	}
	return filepath.Join(root, name)
}

// AllBelow is several names of files, each as Below has it.
func AllBelow(root string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = Below(root, name)
	}
	return all
}
