package bench

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tables of both forms have rows, in the order of their columns; what is not known is null.
func TestTablesAsJSON(t *testing.T) {
	eor := 1.5
	free := &Free{Columns: []string{"b", "a"}}
	free.Add("x", 1)
	free.Add(nil, true)
	document, err := json.Marshal(Tables{[]Table{{Name: "one", Title: "t", Rows: []Row{{Model: "mlp", EOR: &eor}}},
		{Name: "two", Title: "u", Notes: []string{"n"}, Free: free}, {Name: "none", Title: "v"}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tables":[{"name":"one","title":"t","rows":[{"model":"mlp","jobs":0,"batch":0,"policy":"",` +
		`"phase":"","budget_bytes":null,"passes":"","msr_all":null,"msr_live":null,"eor":1.5,"cbr":null,` +
		`"cbr_all":null,"first_iteration_eor":null,"plan_ms":null,"peak_bytes":null,"swap_bytes":null,` +
		`"recompute_ms":null,"paper_msr":null,"paper_eor":null}]},` +
		`{"name":"two","title":"u","notes":["n"],"rows":[{"b":"x","a":1},{"b":null,"a":true}]},` +
		`{"name":"none","title":"v","rows":[]}]}`
	if diff := cmp.Diff(want, string(document)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
