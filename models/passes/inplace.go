package passes

import (
	"slices"

	"tensile/graph"
)

// inPlace makes ops in place of the first operand that is forgotten after it, where there is one.
func inPlace(r *rewrite, chosen func(*graph.Op) bool) {
	u := usesOf(r.g)
	for i := range r.g.Ops {
		op := &r.g.Ops[i]
		if op.Attrs.InPlace > 0 || !chosen(op) {
			continue
		}
		operands := graph.MayOverwrite(op.Kind)
		reasons := make([]string, len(operands))
		for k, operand := range operands {
			reasons[k] = u.keepsOperand(op, operand)
		}
		if k := slices.Index(reasons, ""); k >= 0 {
			u.overwrite(op, operands[k])
			r.changed++
		} else if len(reasons) > 0 {
			r.refuse(op, "%s", reasons[0])
		}
	}
}
