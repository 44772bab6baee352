package coremain

import (
	"fmt"
	"runtime"

	"github.com/coredns/caddy"
)

const (
	// CoreName is the name that the server tells of itself.
	CoreName = "CoreDNS"
	// CoreVersion is the version of this server, in the form of semantic versioning.
	CoreVersion = "2.0.0-dev"
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

// versionText is the two lines and more that -version prints. Programs that embed the
// server may have set a version of their own.
func versionText() string {
	text := fmt.Sprintf("%s-%s\n%s/%s, %s, %s\n", caddy.AppName, caddy.AppVersion, runtime.GOOS, runtime.GOARCH, runtime.Version(), GitCommit)
	if gitTag == "" && gitShortStat != "" {
		text += fmt.Sprintf("%s\n%s\n", gitShortStat, gitFilesModified)
		if buildDate != "" || gitNearestTag != "" {
			text += fmt.Sprintf("built %s after %s\n", buildDate, gitNearestTag)
		}
	}
	return text
}
