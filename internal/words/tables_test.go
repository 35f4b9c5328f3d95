package words

import "strings"

// texts are the files that are read, by the ends of their names.
var texts = []string{".go", ".md", ".py", ".sh", ".txt", ".txtar"}

// phrases are patterns that no text has: they lean on the sentence before, or a reader takes them for something else.
var phrases = []string{
	`\b[Tt](akes?|aken|ook) down\b`, // records
	`\b[Ll]ikewise\b`,               // say what
	`which is this\b`,
	`of which that is\b`,
	`\bof that[,:;]`,
	`// of that\b`,
	`in the place of\b`, // instead of
	`\b(after|each|every|of|with) so (long|many|much)\b`, // name the number
	`\btakes so (long|many|much)\b`,
	`so many times\b`,
	`\bhears? of\b`,       // learns of, receives
	`holds? nobody up\b`,  // does not block
	`\bone who\b`,         // say who
	`for want of\b`,       // without
	`to be let\b`,         // may
	`\breckon`,            // estimates
	`\berrand`,            // plan request
	`the release before`,  // none was published
	`\bearlier release\b`, // none was published
}

// bare are the words that name no function on their own.
var bare = strings.Fields(`
	about above across after again against ahead alone along already also always among another any anything apart
	around as aside at away back before behind below beneath beside besides between beyond both but by down each
	either else elsewhere enough even ever every everything except far few first for forth from further gone has
	have having held her here him his how however if in inside instead into is it its itself just kept known last
	later least left like lost many mine more most much near nearby nearest never no nobody none nor not nothing of
	off often on once one only onto opposite or other others otherwise out outside over own past per perhaps quite
	rather said same self several since so some somebody something still such than that the their them then there
	these they this those though through thus till to together told too toward twice under until up upon us usual
	very via want wants was well what when where whether which while who whole whom whose why will with within
	without yes yet`)

// allowed are the words above that a folder still has. A word goes from here with its last place, a test says so.
var allowed = map[string][]string{
	"internal/long": {"On", "Only", "Or"}, // stay: they read well after the package, as in long.Only(t)
	"peak":          {"At", "Of"},         // stay: peak.Of is in STYLE_GUIDE.md

	"controller": {`// of that\b`, `\b(after|each|every|of|with) so (long|many|much)\b`, `\bhears? of\b`,
		`\bof that[,:;]`, `\breckon`, `holds? nobody up\b`, `to be let\b`},
	"device/lease": {`// of that\b`, `\b(after|each|every|of|with) so (long|many|much)\b`, `\bhears? of\b`,
		`so many times\b`, "When", "known", "of", "want"},
	"device/lease/process": {"gone", "told", "want"},
	"executor": {`\b(after|each|every|of|with) so (long|many|much)\b`, `\b[Ll]ikewise\b`, `\berrand`,
		`\bhears? of\b`, `\bof that[,:;]`, `\bone who\b`, `for want of\b`, `in the place of\b`},
	"executor/sidecar": {"Least"},
	"observe":          {`\b[Ll]ikewise\b`, `\bhears? of\b`},
	"plan": {`// of that\b`, `\b(after|each|every|of|with) so (long|many|much)\b`, `\b[Ll]ikewise\b`,
		`holds? nobody up\b`, `in the place of\b`, "Has", "held"},
	"plan/pool":       {"after", "apart", "below", "each", "first", "from", "known", "of", "once", "then"},
	"plan/pool/trace": {"before", "each", "enough", "whole", "within"},
	"plan/program":    {"Has", "Last", "Of", "Within", "Without", "from", "last", "of", "with"},
	"plan/randtest":   {"ahead"},
	"scheduler": {`\b(after|each|every|of|with) so (long|many|much)\b`, `\b[Ll]ikewise\b`, `\bhears? of\b`,
		`\bof that[,:;]`, `\breckon`, `\btakes so (long|many|much)\b`, `for want of\b`, `in the place of\b`,
		`to be let\b`},
	"scheduler/draft": {"Away", "Beside", "First", "From", "In", "To", "Together", "between", "each",
		"every"},
	"scheduler/planner":             {"At", "Before", "Least", "below"},
	"scheduler/rivals/autoswap":     {"Away", "Least", "Within"},
	"scheduler/rivals/capuchin":     {"Left"},
	"scheduler/rivals/superneurons": {"Of"},
	"scheduler/policies/tensile":    {"around"},
	"scheduler/rivals/vdnn":         {"several"},
	"scheduler/rivals/waterwave":    {"When"}, // it is a lease.Method
	"scheduler/rivals/zico":         {"When"},
	"scheduler/jobtest":             {"Of"},
	"scheduler/rivals/replay":       {"Left"},
	"wire": {`// of that\b`, `\b(after|each|every|of|with) so (long|many|much)\b`, `\bhears? of\b`, `to be let\b`,
		"About", "Over"},
	"wire/leader":    {"Until"},
	"wire/recording": {"Same"},
}
