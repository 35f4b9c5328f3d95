package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is that of the newest section of CHANGELOG.md.
const version = "0.1.0"

// versionText is the version with the commit that the Go toolchain has found at the build, if there was one.
func versionText() string {
	commit := "commit unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := make(map[string]string)
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if revision := settings["vcs.revision"]; revision != "" {
			commit = "commit " + revision[:min(12, len(revision))]
		}
		if settings["vcs.modified"] == "true" {
			commit += " with changes"
		}
	}
	return fmt.Sprintf("%s (%s, %s %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
