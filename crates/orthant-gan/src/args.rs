//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Generative models trained with Sinkhorn divergences in linear time, under a kernel that is learned against them.
#[derive(Debug, Parser)]
#[command(name = "orthant-gan", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Threads to use; all processors if you do not say
    #[arg(long, global = true, value_name = "N", value_parser = positive)]
    pub(crate) threads: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  orthant-gan train --config ring --out ring                     a toy, no data needed
  orthant-gan train --data DIR --config fashion-small --out run  images, on two cores
  orthant-gan train --data DIR --out run --resume                goes on where it was stopped
  orthant-gan sample --run run --count 64 --out grid.png
  orthant-gan evaluate --run run --data DIR

DIR holds CIFAR-10 batches (binary version), IDX files (MNIST, Fashion-MNIST) or .png and .jpg files.
Exit codes: 0 done, 2 bad usage or input, 1 anything else.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Trains a generator and the kernel that tells its samples from data
    #[command(after_help = TRAIN)]
    Train(Train),
    /// Draws samples of a trained generator
    #[command(after_help = SAMPLE)]
    Sample(Sample),
    /// The mean learned kernel between images and noise: the paper's Table 1
    #[command(after_help = TABLE)]
    KernelTable(KernelTable),
    /// Compares samples with images that training never saw
    #[command(after_help = EVALUATE)]
    Evaluate(Evaluate),
    /// Times the loss, forward and backward, for growing batches, beside that of a dense kernel
    #[command(after_help = BENCH)]
    Bench(Bench),
    /// Prints the settings that come with the command
    #[command(after_help = CONFIG)]
    Config(Config),
}

const TRAIN: &str = "\
Examples:
  orthant-gan train --config ring --out ring
  orthant-gan train --data /usr/share/datasets/fashion-mnist --config fashion-small --out fashion
  orthant-gan train --data cifar-10-batches-bin --config my.toml --out run --steps 2000
  orthant-gan train --data cifar-10-batches-bin --out run --resume

RUN holds config.toml, checkpoint.safetensors, log.jsonl (a line a step: step, divergence, critic_divergence, kernel, images, \
iterations, seconds) and samples/step-*.png. A run that was stopped goes on from its checkpoint with --resume, \
to the same bits as one that was not.";

#[derive(Debug, Args)]
pub(crate) struct Train {
    /// Folder of images; not for the ring
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Settings: a TOML file, or one of those that come with the command (see orthant-gan config)
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) config: Option<PathBuf>,

    /// Folder of the run
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,

    /// Go on with the run that is there
    #[arg(long)]
    pub(crate) resume: bool,

    /// Steps of the generator, in place of training.steps
    #[arg(long, value_name = "N", value_parser = positive_64)]
    pub(crate) steps: Option<u64>,

    /// In place of training.seed
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,

    /// Steps from one picture of samples to the next; twenty pictures if you do not say
    #[arg(long, value_name = "N", value_parser = positive_64)]
    pub(crate) grid_every: Option<u64>,

    /// Seconds from one checkpoint to the next
    #[arg(long, value_name = "S", default_value_t = 60)]
    pub(crate) save_every: u64,

    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SAMPLE: &str = "\
Examples:
  orthant-gan sample --run fashion --count 64 --out grid.png
  orthant-gan sample --run fashion --count 2000 --seed 7 --out samples.npy
  orthant-gan sample --run ring --count 1000 --out points.csv

A .png shows images side by side, or points in the plane over the data. A .npy or .csv has a sample a row: the pixels of an \
image from -1 to 1, channel after channel, or the coordinates of a point.";

#[derive(Debug, Args)]
pub(crate) struct Sample {
    /// Folder of the run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// How many
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = positive)]
    pub(crate) count: usize,

    /// Another number, other samples
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Images a row of the picture; about as many as rows if you do not say
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) columns: Option<usize>,

    /// .png, .npy, .csv or .tsv
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

const TABLE: &str = "\
Example:
  orthant-gan kernel-table --run fashion --data /usr/share/datasets/fashion-mnist

A kernel that has learned what images are is large between images, and small where noise is on one side or on \
both. Images are held-out ones, noise is uniform in every pixel.
JSON: count, seed, image_image, image_noise, noise_noise, each with mean and log_mean.";

#[derive(Debug, Args)]
pub(crate) struct KernelTable {
    /// Folder of the run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Folder of images
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Images, and as many of noise
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = two_or_more)]
    pub(crate) count: usize,

    /// Another number, other images and other noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EVALUATE: &str = "\
Examples:
  orthant-gan evaluate --run fashion --data /usr/share/datasets/fashion-mnist
  orthant-gan evaluate --run ring --count 1000 --json

Samples, training images and samples before training are each compared with held-out images, in the space of the \
principal components of the training images: by the Sinkhorn divergence, with the interval that the exact one is in, and \
by precision (samples among the images) and recall (images among the samples), with balls as large as the distance \
to the nearest neighbours (Kynkaanniemi et al. 2019). Epsilon is 0.05 times the mean squared distance of held-out \
images from each other. Of the ring, the points themselves are compared, and the modes are counted.
JSON: divergence, training, initial {value, low, high, kind, converged}, times_smaller, precision, recall, \
training_precision_recall, neighbours, epsilon, mean_squared_distance, count, dims, explained (of the variance by the \
components; images only), modes (ring only), step, seed, seconds.";

#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    /// Folder of the run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Folder of images; not for the ring
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Samples, and as many images, at most
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = two_or_more)]
    pub(crate) count: usize,

    /// Principal components
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = positive)]
    pub(crate) dims: usize,

    /// Neighbours of precision and recall
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = positive)]
    pub(crate) neighbours: usize,

    /// Regularisation; from the data if you do not say
    #[arg(long, value_name = "EPS", allow_negative_numbers = true)]
    pub(crate) eps: Option<f64>,

    /// Another number, other samples and other images
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const BENCH: &str = "\
Examples:
  orthant-gan bench
  orthant-gan bench --sizes 500,1000,2000 --rank 300 --json

Times are of the divergence of a batch and its gradient by latents and anchors, the networks left out. The exponent is \
that of a power of the batch size, fitted to the times.";

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Batch sizes
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = two_or_more,
          default_values_t = [500, 1000, 2000, 4000, 7000])]
    pub(crate) sizes: Vec<usize>,

    /// Number of features
    #[arg(long, value_name = "R", default_value_t = 600, value_parser = positive)]
    pub(crate) rank: usize,

    /// Coordinates of a latent
    #[arg(long, value_name = "D", default_value_t = 64, value_parser = positive)]
    pub(crate) latent: usize,

    /// Regularisation
    #[arg(long, value_name = "EPS", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) eps: f64,

    /// Times are the best of so many
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive)]
    pub(crate) repeats: usize,

    /// Batches of more are not tried with the dense kernel: 7,000 take minutes
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) dense_limit: usize,

    /// Another number, other latents
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CONFIG: &str = "\
Examples:
  orthant-gan config                               what there is
  orthant-gan config fashion-small > my.toml       a file to change";

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Which one; a list of all if you do not say
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

fn positive(text: &str) -> Result<usize, String> {
    at_least(1, text)
}

fn positive_64(text: &str) -> Result<u64, String> {
    at_least(1, text).map(|n| n as u64)
}

fn two_or_more(text: &str) -> Result<usize, String> {
    at_least(2, text)
}

fn at_least(least: usize, text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("a whole number of {least} or more is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_readme_says_can_be_said() {
        let readme = include_str!("../../../README.md");
        let examples = [EXAMPLES, TRAIN, SAMPLE, TABLE, EVALUATE, BENCH, CONFIG].join("\n");
        let mut commands = 0;
        for line in readme.lines().chain(examples.lines()).map(str::trim_start) {
            let words = line.split_whitespace().take_while(|word| *word != ">" && *word != "#");
            let words: Vec<&str> = words.collect();
            // In the help, two blanks and some words may follow.
            let said = line.split("  ").next().unwrap_or_default().split_whitespace().count();
            if words.first() == Some(&"orthant-gan") {
                let parsed = Cli::try_parse_from(&words[..said.min(words.len())]);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                commands += 1;
            }
        }
        assert!(commands > 20, "{commands}");
    }
}
