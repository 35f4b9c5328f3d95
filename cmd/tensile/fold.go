package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fold is a flag that takes a list: its own value, where it has one, and parts, as in --device cpu,threads=4. Each part
// is also a flag, by which it was given before there were lists and still can be; help shows it as a part alone.
type fold struct {
	flag  string
	usage string   // Of a flag with no value of its own; after a semicolon, added to that of one that has one.
	parts []string // Names of flags; KEY:FLAG where the part has another name than the flag.
}

// folds are made in all commands that have the flag of a row, or at least two of its parts where it has no own value.
var folds = []fold{
	{"device", "; also as a list: cpu,threads=4", []string{"threads", "link", "no-openblas", "noise", "mispredict",
		"profile"}},
	{"with", "sizes of the networks and how they are trained, as in --with image=32,lr=0.1", []string{"batch", "image",
		"channels", "classes", "sequence", "vocabulary", "optimizer", "lr", "loss", "order", "seed", "replicas"}},
	{"budget", "; also as a list: 60%,host=8GiB", []string{"host:host-memory", "anyway"}},
	{"policy", "; also as a list: tensile,work=1000000000", []string{"work:planning-work"}},
	{"ablate", "leave parts out, most for measurements, as in --ablate recompute,stalls", []string{
		"reorder:no-reorder", "free-swaps:no-free-swaps", "recompute:no-recompute", "chains:no-chains",
		"stalls:no-stalls", "relax:no-relax", "early-out:late-out", "two-channels:one-channel", "replan:no-replan",
		"moves:no-moves", "prediction:measured"}},
	{"predictor", "; or calibrate, or none", []string{"calibrate", "none:no-calibrate"}},
	{"checkpoint", "; also as a list: 5m,keep=3", []string{"keep:keep-checkpoints", "restarts", "any-device"}},
	{"processes", "executor processes: one for all jobs, or one for each", []string{"one:share", "each:isolate"}},
	{"job", "; also as a list: JOB,state=FOLDER", []string{"state", "credentials", "nats"}},
	{"show", "what to print beside the usual table, as in --show steps,commands", []string{"steps", "commands",
		"explain", "wide"}},
	{"http", "; also as a list: :8080,metrics-open", []string{"metrics-open"}},
	{"listen", "; also as a list: :4222,tls", []string{"tls"}},
	{"nats", "; also as a list: nats://HOST:4222,auth=FILE", []string{"auth:nats-auth", "ca:nats-ca",
		"executors:nats-executors"}},
	{"log", "what is logged and how, as in --log level=warn,format=json", []string{"level:log-level",
		"format:log-format"}},
	{"timeouts", "how long to wait for executors and for a controller, as in --timeouts silence=30s", []string{
		"silence", "give-up", "orphan"}},
	{"learning", "how measured latencies change plans, as in --learning alpha=0.5", []string{"alpha", "threshold"}},
	{"quotas", "limits of disk space, as in --quotas users=20GiB", []string{"users:user-quota",
		"checkpoints:checkpoint-quota"}},
}

// keepsOwn are parts that help shows as flags, too: those that are given most.
var keepsOwn = []string{"batch", "image", "explain"}

// folded is the value of a flag that takes a list.
type folded struct {
	pflag.Value                        // its own; nil: it has none
	parts       map[string]*pflag.Flag // by key
	keys        []string
	flags       *pflag.FlagSet
}

func (v *folded) Type() string {
	if v.Value == nil {
		return "list"
	}
	return v.Value.Type()
}

func (v *folded) String() string {
	if v.Value == nil {
		return ""
	}
	return v.Value.String()
}

// partLetters are those of the names of parts. What has others before a "=", such as a URL, is none.
const partLetters = "abcdefghijklmnopqrstuvwxyz-"

// Set sets the flags of the parts. What is none is the flag's own value.
func (v *folded) Set(text string) error {
	var own []string
	for i, item := range strings.Split(text, ",") {
		key, value, given := strings.Cut(item, "=")
		part := v.parts[key]
		switch {
		case part == nil && (v.Value == nil || i > 0 && given && strings.Trim(key, partLetters) == ""):
			return fmt.Errorf("there is no %q: give a list of %s", key, strings.Join(v.forms(), ", "))
		case part == nil:
			own = append(own, item)
			continue
		case !given && part.NoOptDefVal == "":
			return fmt.Errorf("give %s", form(key, part))
		case !given:
			value = part.NoOptDefVal
		}
		if err := v.flags.Set(part.Name, value); err != nil {
			return err
		}
	}
	if own == nil {
		return nil
	}
	return v.Value.Set(strings.Join(own, ","))
}

// forms are how the parts are given.
func (v *folded) forms() []string {
	var all []string
	for _, key := range v.keys {
		all = append(all, form(key, v.parts[key]))
	}
	return all
}

// form is how a part is given.
func form(key string, part *pflag.Flag) string {
	if part.NoOptDefVal != "" {
		return key
	}
	return key + "=" + strings.ToUpper(part.Value.Type())
}

// foldFlags makes lists of the flags of a command and of those below it.
func foldFlags(c *cobra.Command) {
	for _, below := range c.Commands() {
		if below.Name() != "bench" { // whose flags mean other things
			foldFlags(below)
		}
	}
	for _, f := range folds {
		f.apply(c)
	}
}

func (f *fold) apply(c *cobra.Command) {
	v := &folded{parts: make(map[string]*pflag.Flag), flags: c.Flags()}
	for _, part := range f.parts {
		key, name, _ := strings.Cut(part, ":")
		if name == "" {
			name = key
		}
		if flag := c.Flags().Lookup(name); flag != nil {
			v.parts[key] = flag
			if !flag.Hidden {
				v.keys = append(v.keys, key)
			}
		}
	}
	to := c.Flags().Lookup(f.flag)
	switch {
	case len(v.keys) == 0:
		return
	case to == nil && (len(v.keys) < 2 || strings.HasPrefix(f.usage, ";")):
		return
	case to == nil:
		c.Flags().Var(v, f.flag, f.usage)
		complete(c, f.flag, v.keys...)
	default:
		v.Value, to.Value = to.Value, v
		to.Usage += f.usage
	}
	for _, flag := range v.parts {
		flag.Hidden = !slices.Contains(keepsOwn, flag.Name)
	}
}

// visitGiven visits the flags that were given. Of a list without a value of its own these are the parts.
func visitGiven(flags *pflag.FlagSet, visit func(*pflag.Flag)) {
	flags.Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*folded); !ok || v.Value != nil {
			visit(f)
		}
	})
}
