package graph

// Kinds of networks that read sequences. Matrices are rows of features: a batch of N sequences of S steps is N*S rows.
const (
	Embedding   Kind = "embedding"    // table[V,D] ids[N] -> y[N,D]; an id is a whole number below V
	EmbeddingDW Kind = "embedding_dw" // ids dy -> dtable: rows of equal id are added in their order; Extent[0] is V

	Bias Kind = "bias" // x[N,K] b[K] -> x + b in every row

	LayerNorm     Kind = "layer_norm"      // x[N,D] gamma[D] beta[D] -> y mean[N] scale[N] (1/deviation, of the biased variance); Epsilon
	LayerNormGrad Kind = "layer_norm_grad" // x mean scale gamma dy -> dx dgamma dbeta

	GELU      Kind = "gelu"       // x -> x*Φ(x), by the error function
	GELUDX    Kind = "gelu_dx"    // x dy -> dx
	Sigmoid   Kind = "sigmoid"    // x -> y
	SigmoidDX Kind = "sigmoid_dx" // y dy -> dx
	Tanh      Kind = "tanh"       // x -> y
	TanhDX    Kind = "tanh_dx"    // y dy -> dx

	Blend     Kind = "blend"      // t a b -> t*a + (1-t)*b, equal shapes
	BlendGrad Kind = "blend_grad" // t a b dy -> dt da db

	MatMul    Kind = "matmul"     // a[B,M,K] b[B,K,N] -> y[B,M,N], a or b stored the other way round by TransposeA, TransposeB
	Transpose Kind = "transpose"  // x[A,M,N,D] -> y[A,N,M,D]; its own inverse
	Softmax   Kind = "softmax"    // x[N,T,S] -> y, over S, of Factor*x; Causal: T is S, and step t sees none after t
	SoftmaxDX Kind = "softmax_dx" // y dy -> dx; Factor

	// Additive attention's energies (Bahdanau et al.): how well each query fits each key, Σ v*tanh(q+k) over A.
	AdditiveScores     Kind = "additive_scores"      // q[N,T,A] k[N,S,A] v[A] -> e[N,T,S]
	AdditiveScoresGrad Kind = "additive_scores_grad" // q k v de -> dq dk dv

	// A step of long short-term memory. The gates input, forget, cell and output stand side by side before their
	// nonlinearities, x being what comes from below and r what comes from the step before. In the first step, where h and
	// c of the step before are zero, r and c are left out, and x includes the bias that r has in later steps.
	LSTM     Kind = "lstm"      // x[N,4H] (r[N,4H] c[N,H]) -> h[N,H] c[N,H]
	LSTMGrad Kind = "lstm_grad" // x (r c) dh (dc) -> dx[N,4H], which is dr too, and dc of the step before

	MeanSquare    Kind = "mean_square"     // a b -> loss[1]: the mean of (a-b)²
	MeanSquareDX  Kind = "mean_square_dx"  // a b -> da
	SigmoidXent   Kind = "sigmoid_xent"    // logits targets (0 to 1), equal shapes -> loss[1]: the mean over all elements
	SigmoidXentDX Kind = "sigmoid_xent_dx" // logits targets -> dlogits
)
