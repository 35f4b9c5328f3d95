// Package models builds the training graphs of well-known networks: forward, backward and optimizer, ready to plan.
//
//	mlp              784-1024-1024-1024-10 with ReLU
//	lenet            LeNet-5 with ReLU and max pooling
//	alexnet          Krizhevsky et al., with local response normalisation and grouped convolutions
//	vgg11 to vgg19   Simonyan and Zisserman, dropout in the classifier; with -cifar for small images
//	resnet18         residual network of He et al.
//	resnet50 to 152  with bottlenecks, stride in the 3x3 convolutions (v1.5)
//	resnet:a,b,c,d   the same with any number of blocks in the four stages
//	resnet110-cifar  for small images
//	inceptionv3, inceptionv4, densenet121, nasnet-mobile, nasnet-large
//	bert             BERT-base with its heads for hidden tokens and sentence pairs
//	gpt2             the smallest GPT-2, its head tied to its table of tokens
//	gnmt             LSTM encoder and decoder with attention, four layers each, unrolled
//	rhn              recurrent highway network of ten layers a step, unrolled
//	tacotron2        the acoustic model, unrolled
//
// [Families] lists the forms of names that give sizes.
//
// [Build] is the whole interface; the zero [Config] is the network's default. docs/models.md names sources and
// departures. Networks take any image size that leaves at least one pixel everywhere: the first linear layer has as
// many inputs as the real feature map has elements. [MACs] counts the arithmetic of a forward pass.
//
// A graph of a classifier has two inputs, "input" [N,C,H,W] and "labels" [N]; the inputs of a network that reads
// sequences are called after what they hold, for example "tokens" [N,S] and "next" [N,S]. Every graph has one output
// [1], "loss.0" or "loss", and names made of its layers: the op "stage1.block2.conv3" has the parameter
// "stage1.block2.conv3.w" and the gradient op "stage1.block2.conv3.dw". Ops that belong together carry the same layer
// mark.
package models
