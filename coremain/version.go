package coremain

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/coredns/caddy"
)

const (
	// CoreName is the name that the server tells of itself.
	CoreName = "CoreDNS"
	// CoreVersion is the version that the sources are, or are going to be, in the form of semantic versioning. See
	// Version.
	CoreVersion = "2.0.0"

	reference = "CoreDNS 1.14.7" // whose configurations, answers and plugins are those of this server
)

// What a build tells of its sources; set with -ldflags "-X ...".
var (
	// GitCommit is the commit that the program was built from.
	GitCommit string

	buildDate        string
	gitTag           string // the tag of the commit, if it has one
	gitNearestTag    string
	gitShortStat     string // what differs from the commit, in a line
	gitFilesModified string // the files that differ
)

// Version is the version of this build: CoreVersion, or one that prepares it such as 2.0.0-rc.1, if the build was
// told of a tag that says so, and else CoreVersion with "-dev" behind it.
func Version() string { return versionAt(gitTag) }

func versionAt(tag string) string {
	v := strings.TrimPrefix(tag, "v")
	if v == CoreVersion || strings.HasPrefix(v, CoreVersion+"-") {
		return v
	}
	return CoreVersion + "-dev"
}

// versionText is the three lines and more that -version prints. Programs that embed the
// server may have set a version of their own.
func versionText() string {
	text := fmt.Sprintf("%s-%s\n%s/%s, %s, %s\ncompatible with %s\n",
		caddy.AppName, caddy.AppVersion, runtime.GOOS, runtime.GOARCH, runtime.Version(), GitCommit, reference)
	if gitTag == "" && gitShortStat != "" {
		text += fmt.Sprintf("%s\n%s\n", gitShortStat, gitFilesModified)
		if buildDate != "" || gitNearestTag != "" {
			text += fmt.Sprintf("built %s after %s\n", buildDate, gitNearestTag)
		}
	}
	return text
}
