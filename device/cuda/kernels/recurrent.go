package kernels

import "tensile/graph"

var recurrent = map[graph.Kind]entry{
	graph.LSTM:     {launches: lstm},
	graph.LSTMGrad: {launches: lstmGrad},
}

// operandAt is the address of an operand, 0 if it is not there.
func operandAt(addresses []uint64, i int) uint64 {
	if i < len(addresses) {
		return addresses[i]
	}
	return 0
}

func lstm(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	return []Launch{launchEach("lstm", n, c.In[0], operandAt(c.In, 1), operandAt(c.In, 2), c.Out[0], c.Out[1], n,
		c.OutShapes[0][1])}
}

func lstmGrad(c *Call) []Launch {
	state := c.OutShapes[1]
	forward, grads := c.In[:graph.LSTMGradOperands(len(c.In))], c.In[graph.LSTMGradOperands(len(c.In)):]
	return []Launch{launchEach("lstm_grad", state.Elements(), c.In[0], operandAt(forward, 1), operandAt(forward, 2),
		grads[0],
		operandAt(grads, 1), c.Out[0], c.Out[1], state.Elements(), state[1])}
}
