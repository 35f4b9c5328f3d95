package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"tensile/internal/needs"
)

// called is a command line of deploy/ with its flags.
type called struct {
	t     *testing.T
	where string
	words []string
	flags map[string]string
}

// calls wants a command line, without the program, to be one of ours: the command and every flag exist, and the flags'
// values can be read.
func calls(t *testing.T, where string, words ...string) *called {
	t.Helper()
	c, rest, err := root().Find(words)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%s: tensile %q: %v", where, words, err)
	}
	if left := c.Flags().Args(); len(left) > 0 {
		t.Errorf("%s: tensile %q has %q left over", where, words, left)
	}
	called := &called{t, where, words, make(map[string]string)}
	for _, flag := range []string{"state", "listen", "http", "credentials", "checkpoints", "nats", "metrics-open"} {
		if c.Flags().Changed(flag) {
			called.flags[flag] = c.Flags().Lookup(flag).Value.String()
		}
	}
	return called
}

// port is that of the address which a flag has.
func (c *called) port(flag string) string {
	c.t.Helper()
	_, port, err := net.SplitHostPort(c.flags[flag])
	if err != nil {
		c.t.Errorf("%s: --%s %s: %v", c.where, flag, c.flags[flag], err)
	}
	return port
}

// below wants the path of each flag to lie in one of some folders.
func (c *called) below(folders []string, flags ...string) {
	c.t.Helper()
	for _, flag := range flags {
		if !slices.ContainsFunc(folders, func(dir string) bool {
			return dir != "" && strings.HasPrefix(path.Clean(c.flags[flag])+"/", dir+"/")
		}) {
			c.t.Errorf("%s: --%s %q lies in none of the folders %q", c.where, flag, c.flags[flag], folders)
		}
	}
}

const deploy = "../../scripts/deploy"

func deployed(t *testing.T, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{deploy}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metadata, pods and what stands in them are the fields of Kubernetes objects that ours use. What a manifest has
// beside these is refused: the fields of the API are many, and one that is misspelt is ignored by servers of some
// versions.
type metadata struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

type claim struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       struct {
		AccessModes []string `yaml:"accessModes"`
		Resources   struct{ Requests map[string]string }
	}
}

type service struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       struct {
		Selector map[string]string
		Ports    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
	}
}

type pods struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       struct {
		Replicas int
		Strategy struct{ Type string }
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata metadata
			Spec     pod
		}
	}
}

type pod struct {
	Hostname        string
	HostNetwork     bool              `yaml:"hostNetwork"`
	DNSPolicy       string            `yaml:"dnsPolicy"`
	NodeSelector    map[string]string `yaml:"nodeSelector"`
	Grace           int               `yaml:"terminationGracePeriodSeconds"`
	SecurityContext security          `yaml:"securityContext"`
	InitContainers  []container       `yaml:"initContainers"`
	Containers      []container
	Volumes         []volume
}

type volume struct {
	Name                  string
	PersistentVolumeClaim struct {
		ClaimName string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
	Secret struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode int    `yaml:"defaultMode"`
	}
	HostPath struct{ Path, Type string } `yaml:"hostPath"`
}

type security struct {
	RunAsNonRoot bool `yaml:"runAsNonRoot"`
	RunAsUser    int  `yaml:"runAsUser"`
	FSGroup      int  `yaml:"fsGroup"`
}

type container struct {
	Name, Image     string
	Command, Args   []string
	SecurityContext security `yaml:"securityContext"`
	Env             []struct {
		Name      string
		ValueFrom struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	ReadinessProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	} `yaml:"readinessProbe"`
	Resources    struct{ Requests map[string]string }
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

// strictly decodes a document with no field that is not in the type, and none twice.
func strictly(text string, into any) error {
	return yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(into)
}

// manifests are the objects of a file, by kind.
func manifests(t *testing.T, name string) map[string]any {
	t.Helper()
	objects := make(map[string]any)
	for _, text := range strings.Split(deployed(t, "kubernetes", name), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		known := map[string]any{"PersistentVolumeClaim": new(claim), "Service": new(service),
			"Deployment": new(pods), "DaemonSet": new(pods)}[head.Kind]
		if known == nil || objects[head.Kind] != nil {
			t.Fatalf("%s: an object of kind %q, or two", name, head.Kind)
		}
		if err := strictly(text, known); err != nil {
			t.Fatalf("%s: %s: %v", name, head.Kind, err)
		}
		objects[head.Kind] = known
	}
	return objects
}

// mounted wants the volumes of a pod and the mounts of its containers to fit, and returns the folders of the last one.
func mounted(t *testing.T, p *pod) (folders []string) {
	t.Helper()
	for _, c := range append(p.InitContainers, p.Containers...) {
		folders = nil
		for _, m := range c.VolumeMounts {
			folders = append(folders, m.MountPath)
			if !slices.ContainsFunc(p.Volumes, func(v volume) bool { return v.Name == m.Name }) {
				t.Errorf("container %s mounts %s, which there is not", c.Name, m.Name)
			}
		}
		if c.Image != "tensile:"+version {
			t.Errorf("container %s is of image %s, and this is %s", c.Name, c.Image, version)
		}
	}
	return folders
}

// The manifests hold together: selectors find pods, ports and probes what is served, folders what is mounted; and every
// command line is one of ours.
func TestKubernetes(t *testing.T) {
	of, also := manifests(t, "controller.yaml"), manifests(t, "executors.yaml")
	d, x := of["Deployment"].(*pods), also["DaemonSet"].(*pods)
	s, storage := of["Service"].(*service), of["PersistentVolumeClaim"].(*claim)
	for _, w := range []*pods{d, x} {
		if w.APIVersion != "apps/v1" || w.Spec.Selector.MatchLabels["app"] != w.Spec.Template.Metadata.Labels["app"] ||
			len(w.Spec.Template.Spec.Containers) != 1 || w.Spec.Selector.MatchLabels["app"] == "" {
			t.Fatalf("%s %s is %+v", w.Kind, w.Metadata.Name, w)
		}
	}
	pod, other := &d.Spec.Template.Spec, &x.Spec.Template.Spec
	c, e := pod.Containers[0], other.Containers[0]
	takes, joins := calls(t, "Deployment", c.Args...), calls(t, "DaemonSet", e.Args...)
	takes.below(mounted(t, pod), "state")
	joins.below(mounted(t, other), "credentials", "checkpoints")
	ports := map[string]string{"bus": takes.port("listen"), "http": takes.port("http")}
	for _, p := range c.Ports {
		if ports[p.Name] != fmt.Sprint(p.ContainerPort) {
			t.Errorf("port %s is %d, and the controller listens at %s", p.Name, p.ContainerPort, ports[p.Name])
		}
	}
	for _, p := range s.Spec.Ports {
		if ports[p.TargetPort] != fmt.Sprint(p.Port) || len(s.Spec.Ports) != len(c.Ports) {
			t.Errorf("the service has port %+v, and the controller %v", p, ports)
		}
	}
	notes := d.Spec.Template.Metadata.Annotations
	if probe := c.ReadinessProbe.HTTPGet; probe.Path != metricsPath || ports[probe.Port] == "" ||
		takes.flags["metrics-open"] != "true" || notes["prometheus.io/path"] != metricsPath ||
		notes["prometheus.io/port"] != ports["http"] {
		t.Errorf("the probe asks for %+v, Prometheus for %v; ports are %v", probe, notes, ports)
	}
	// executors know the controller by the service, which is in its certificate as the pod's host name
	if want := fmt.Sprintf("tls://%s:%s", s.Metadata.Name, ports["bus"]); joins.flags["nats"] != want ||
		pod.Hostname != s.Metadata.Name || s.Spec.Selector["app"] != d.Spec.Template.Metadata.Labels["app"] {
		t.Errorf("executors join %s, the controller is %s", joins.flags["nats"], want)
	}
	if d.Spec.Replicas != 1 || d.Spec.Strategy.Type != "Recreate" || !other.HostNetwork ||
		pod.Volumes[0].PersistentVolumeClaim.ClaimName != storage.Metadata.Name ||
		e.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" ||
		!strings.Contains(joins.flags["credentials"], "$("+e.Env[0].Name+")") {
		t.Errorf("Deployment %+v, DaemonSet %+v", d.Spec, x.Spec)
	}
	if err := strictly("kind: Deployment\nspec: {replica: 1}\n", new(pods)); err == nil {
		t.Error("a field that is misspelt is not refused")
	}
}

// Sources that the Containerfile copies exist, images have versions, and what it starts is one of our command lines.
func TestContainerfile(t *testing.T) {
	text := strings.ReplaceAll(deployed(t, "Containerfile"), "\\\n", " ")
	stages, copied, begun := map[string]bool{}, 0, false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch words[0] {
		case "FROM":
			if !regexp.MustCompile(`^[a-z.]+/[a-z/]+:[0-9]+\.[0-9]+[0-9a-z.-]*$`).MatchString(words[1]) {
				t.Errorf("the image %s has no version", words[1])
			}
			if len(words) == 4 {
				stages[words[3]] = true
			}
		case "COPY":
			sources := words[1 : len(words)-1]
			if from, ok := strings.CutPrefix(sources[0], "--from="); ok {
				if made := "/src/bin/tensile"; !stages[from] || sources[1] != made {
					t.Errorf("%q: there is no stage %s, or it makes %s", line, from, made)
				}
				continue
			}
			for _, source := range sources {
				copied++
				if _, err := os.Stat(filepath.Join("../..", source)); err != nil {
					t.Error(err)
				}
			}
		case "CMD":
			var args []string
			if err := json.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(line), "CMD ")), &args); err != nil {
				t.Fatal(err)
			}
			c := calls(t, "Containerfile", args...)
			c.below([]string{"/var/lib/tensile"}, "state")
			if want := "EXPOSE " + c.port("listen") + " " + c.port("http") + "\n"; !strings.Contains(text, want) {
				t.Errorf("it listens at other ports than it exposes: want %s", want)
			}
			begun = true
		}
	}
	if copied < 3 || !begun || !strings.Contains(text, "RUN make build\n") {
		t.Errorf("%d sources, begun: %v", copied, begun)
	}
}

// systemd takes the units, and their command lines are ours.
func TestUnits(t *testing.T) {
	var units []string
	for _, name := range []string{"tensile-controller.service", "tensile-executor@.service"} {
		text := deployed(t, "systemd", name)
		const program = "/usr/local/bin/tensile"
		line := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(text)
		if line == nil || line[1] != program {
			t.Fatalf("%s starts %q", name, line)
		}
		c := calls(t, name, strings.Fields(strings.ReplaceAll(line[2], "%i", "lab2"))...)
		if name == "tensile-controller.service" {
			c.below([]string{"/var/lib/tensile"}, "state")
			c.port("listen")
			c.port("http")
		} else {
			c.below([]string{"/var/lib/tensile"}, "checkpoints")
			c.below([]string{"/etc/tensile"}, "credentials")
		}
		binary, err := os.Executable() // which is there, as ours will be
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), strings.Replace(name, "@.", "@lab2.", 1))
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, program, binary)), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, path)
	}
	needs.Program(t, "systemd-analyze", "systemd")
	verify := func(paths ...string) string {
		var said bytes.Buffer
		c := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, paths...)...)
		c.Stdout, c.Stderr = &said, &said
		if err := c.Run(); err != nil {
			return fmt.Sprintf("%v: %s", err, &said)
		}
		return said.String()
	}
	if said := verify(units...); said != "" {
		t.Errorf("systemd-analyze says %s", said)
	}
	broken := filepath.Join(t.TempDir(), "broken.service")
	const unit = "[Service]\nExecStart=/nowhere/tensile\nKilMode=process\n"
	if err := os.WriteFile(broken, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if verify(broken) == "" {
		t.Error("systemd-analyze finds nothing in a broken unit")
	}
}

// Every command line in the README is one of ours, and every file that it names is there.
func TestDeployReadme(t *testing.T) {
	text := deployed(t, "README.md")
	lines := regexp.MustCompile(`(?m)^ .*\btensile ((?:controller|credentials|page|jobs|submit)[^|>;&\n]*)`).
		FindAllStringSubmatch(text, -1)
	if len(lines) < 4 {
		t.Errorf("it has %d command lines", len(lines))
	}
	for _, line := range lines {
		if c, rest, err := root().Find(strings.Fields(line[1])); err != nil || c.ParseFlags(rest) != nil {
			t.Errorf("tensile %s: %v, %v", line[1], err, c.ParseFlags(rest))
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(deploy, link[1])); err != nil {
			t.Error(err)
		}
	}
}
