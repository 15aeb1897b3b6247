//! What stands below the options of a command: examples, and what they mean.

pub(super) const ROT: &str = "Examples:
  orthant rot x.csv y.csv                   epsilon and method from the data
  orthant rot x.csv y.csv --accuracy 1e-6   to a millionth of value_kl
  orthant rot x.csv y.csv --eps 0.1 --columns lon,lat --weights people
  orthant rot cells.h5ad --group day --between d0,d7 --eps 2%
  orthant rot x.csv y.csv --weights count --reach 0.5   unbalanced
  orthant rot x.csv y.csv --picture map.png             which points are coupled
  orthant rot x.csv y.csv --pairs pairs.csv --count 10000
  orthant rot x.npy y.npz:samples --anchors sobol --rank 2000
  zcat x.csv.gz | orthant rot - y.parquet --eps 0.5 --json

Files: CSV or TSV (header or not, .gz too), .npy, .npz (file.npz:key), Parquet (a folder or 'parts/*.parquet' too), Arrow \
and Feather, HDF5 (file.h5:/path), AnnData (.h5ad), PLY; - reads standard input. Columns are matched by name where both \
files have names. JSON is described by docs/schema.json.";

pub(super) const DIVERGENCE: &str = "Examples:
  orthant divergence x.csv y.csv                   epsilon and method from the data
  orthant divergence x.csv y.csv --accuracy 1e-6   to a millionth of the divergence
  orthant divergence cells.csv --group day --between 1,7
  orthant divergence x.csv y.csv --scale standard --pca 10
  orthant divergence x.csv y.csv --eps 0.1 --json | jq .value
  orthant divergence x.csv y.csv --anchors sobol   one kernel for all terms
  orthant divergence x.csv y.csv --reach 0.5       clouds of different mass

S(x, y) = W(x, y) - (W(x, x) + W(y, y)) / 2, with --reach also eps/2 times the square of the difference of the masses. \
JSON is described by docs/schema.json; it has the terms as cross, self_x and self_y.";

pub(super) const COMPARE: &str = "Examples:
  orthant compare a.csv b.csv c.csv                three pairs, one epsilon for all
  orthant compare cells.csv --group sample --columns 2-11
  orthant compare *.npy --output matrix.csv --intervals pairs.csv
  orthant compare *.npy --keep pairs.jsonl --time-limit 1h   once more to go on
  orthant compare *.npy --rank 2000 --certify      one feature map for all clouds

S(x, y) = W(x, y) - (W(x, x) + W(y, y)) / 2 for every pair, the self terms solved once a cloud. Features of random anchors, \
arccos and linear are evaluated once a cloud, if they fit into --memory all together. Epsilon is one for all pairs. JSON is \
described by docs/schema.json: the matrix, an interval for every pair, the tree of average linkage (clusters are numbered as \
in SciPy) and an embedding into the plane. Exit code 3 also if the time was up; then no files but that of --keep are written.";

pub(super) const MAP: &str = "Examples:
  orthant map x.csv y.csv --eps 0.1 > moved.csv      every point of x, where y is
  orthant map x.csv y.csv --output moved.npy --back  from y to x, as an array
  orthant map x.csv y.csv -o moved.csv --at new.csv  points that are not in x
  orthant map x.csv y.csv -o moved.csv --carry kind --carry height
  orthant map x.csv y.csv -o moved.csv --partners partners.csv --top-k 3

A point goes to the mean of its partners in the other cloud, with the probabilities of the plan. The output has the columns \
of the file whose points are mapped, with other coordinates; columns that are no coordinates stay as they are. --carry adds \
columns of the other file: means of numbers, and for text the value that most of the mass goes to, with its part of the mass \
as NAME_probability (--vote does that with numbers too). Without --output the table goes to standard output, and the answer \
for people to standard error. Tables are .csv, .tsv or .npy: arrays have the coordinates and carried numbers only. Points \
are named by their rows in the file, from 1 (in arrays from 0); where rows were left out, the table begins with a column row.";

pub(super) const REPORT: &str = "Examples:
  orthant report x.csv y.csv --output report.html
  orthant report x.npy y.npy --eps 0.1 --accuracy 1e-5 -o report.html

The page needs nothing but itself: pictures are part of it, and it has no scripts. Clouds of more than two dimensions are \
drawn on the first two principal axes of both together. What is printed is what rot prints.";

pub(super) const FLOW: &str = "Examples:
  orthant flow x.csv y.csv --output moved.csv         until the points hardly move
  orthant flow x.csv y.csv --until 0.01 -o moved.npy  until a hundredth is left
  orthant flow x.csv y.csv --picture flow.png --path path.csv --every 1
  orthant flow x.ply y.ply --step 0.1 --momentum 0 --frames frame.png

A step of size 1 takes every point from the mean of its partners in its own cloud to that of its partners in the other. A \
step that would raise the divergence is not taken: momentum is dropped, then the step is halved. Points of weight zero stay. \
Snapshots are taken before the first step, every --every steps and at the end; clouds of more than two dimensions are drawn \
on principal axes. Exit code 3 also if --until was given and not reached. JSON is described by docs/schema.json.";

pub(super) const BARYCENTER: &str = "Examples:
  orthant barycenter a.csv b.csv c.csv --output mean.csv
  orthant barycenter a.csv b.csv --shares 0.2,0.8 --support grid.csv -o mean.csv
  orthant barycenter a.csv b.csv --weights count --debiased --output mean.csv
  orthant barycenter a.csv b.csv --method linear --softmax 1000 -o mean.csv
  orthant barycenter a.csv b.csv --free 1000 --debiased --output mean.csv

The barycentre p has the smallest sum of l W(a,p) over the clouds a, with shares l; with --debiased the smallest sum of \
l S(a,p), which does not blur. It lives on the points of --support, or on all points of the clouds, each once: clouds with \
the same points are histograms on them. With --free or --start its points move instead, down the gradient of that sum (see \
flow), and keep their weights. JSON is described by docs/schema.json.";

pub(super) const TEST: &str = "Examples:
  orthant test x.csv y.csv                           999 permutations
  orthant test x.csv y.csv --permutations 9999       p-values in steps of 1/10000
  orthant test events.parquet --group kind --between signal,background
  orthant test x.csv y.csv --eps 0.1 --json | jq .p_value
  orthant test x.csv y.csv --output divergences.csv  also those of the permutations

Null hypothesis: points (with their weights) are exchangeable, as independent draws from one distribution are. The statistic \
is the Sinkhorn divergence, p = (1 + those of permutations that are at least as large) / (1 + permutations), ties counted. \
That is valid for any epsilon and any kernel: approximations may cost power only. How far the clouds are apart is solved \
once more for itself, with an interval as in divergence; if --accuracy is given and not reached, the exit code is 3. JSON is \
described by docs/schema.json.";

pub(super) const BENCH: &str = "Examples:
  orthant bench --help                what can be measured
  orthant bench --quick               small sizes, some seconds

Runs the program orthant-bench, which stands beside orthant or on the PATH, with these arguments and ends with its exit code. \
It is built with cargo build --release -p orthant-bench.";
