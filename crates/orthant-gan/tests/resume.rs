//! A run that is stopped and goes on is the run that never stopped, bit for bit.

use std::path::Path;

use orthant_gan::data::Pictures;
use orthant_gan::{Config, Data, Trainer, load_generator};

/// Images and slices, batch norms, both optimisers, an average, a warm-up that ends on the way.
const IMAGES: &str = r#"
[data]
kind = "images"
side = 16
[model]
width = 3
latent = 4
noise = 5
bound = "sphere"
[kernel]
rank = 8
[critic]
optimiser = "rmsprop"
rate = 1e-3
clip = 0.5
steps = 1
warm_up = 1
warm_up_steps = 2
warm_up_every = 3
[generator]
optimiser = "adam"
rate = 1e-3
average = 0.9
[training]
batch = 10
slice = 4
"#;

const RING: &str = r#"
[data]
kind = "ring"
[model]
width = 6
latent = 2
noise = 2
[kernel]
rank = 8
[critic]
optimiser = "adam"
steps = 2
[training]
batch = 9
"#;

fn data(config: &Config) -> Data {
    if config.data.side == 16 {
        let bytes =
            (0..30 * 256_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        Data::Images(Pictures::new(1, 16, bytes).unwrap())
    } else {
        Data::Ring
    }
}

fn checkpoint(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("checkpoint.safetensors")).unwrap()
}

#[test]
fn two_steps_and_two_more_are_four_steps() {
    for text in [IMAGES, RING] {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let config = Config::parse("test", text).unwrap();
        let mut trainer = Trainer::new(config.clone(), data(&config)).unwrap();
        let reports: Vec<_> = (0..4).map(|_| trainer.step().unwrap()).collect();
        trainer.save(&whole).unwrap();

        let mut trainer = Trainer::new(config.clone(), data(&config)).unwrap();
        for report in &reports[..2] {
            assert_eq!(trainer.step().unwrap(), *report);
        }
        trainer.save(&parts).unwrap();
        assert_ne!(checkpoint(&whole), checkpoint(&parts));
        drop(trainer);
        let mut trainer = Trainer::resume(&parts, data(&config)).unwrap();
        assert_eq!((trainer.steps_done(), trainer.config()), (2, &config));
        for report in &reports[2..] {
            assert_eq!(trainer.step().unwrap(), *report);
        }
        trainer.save(&parts).unwrap();
        // All weights, moments, statistics and counters.
        assert_eq!(checkpoint(&whole), checkpoint(&parts));
        assert_eq!(load_generator(&parts).unwrap().steps(), 4);
    }
}

#[test]
fn training_changes_every_array() {
    let config = Config::parse("test", IMAGES).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(config.clone(), data(&config)).unwrap();
    trainer.save(folder.path()).unwrap();
    let before = checkpoint(folder.path());
    trainer.step().unwrap();
    trainer.save(folder.path()).unwrap();
    let after = checkpoint(folder.path());
    let [before, after] =
        [&before, &after].map(|b| safetensors::SafeTensors::deserialize(b).unwrap());
    assert!(before.names().contains(&"kernel.anchors"));
    for name in before.names() {
        let [before, after] = [&before, &after].map(|file| file.tensor(name).unwrap());
        assert_ne!(before.data(), after.data(), "{name}");
    }
}

#[test]
fn damaged_and_foreign_checkpoints_are_errors_that_say_so() {
    let config = Config::parse("test", RING).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let resume = || Trainer::resume(run, Data::Ring).unwrap_err().to_string();
    assert!(resume().contains("config.toml"), "no run at all");
    Trainer::new(config.clone(), Data::Ring).unwrap().save(run).unwrap();
    let (file, good) = (run.join("checkpoint.safetensors"), checkpoint(run));
    std::fs::write(&file, &good[..good.len() - 5]).unwrap();
    assert!(resume().contains("not a complete safetensors file"), "{}", resume());
    let other =
        safetensors::serialize(Vec::<(String, safetensors::tensor::TensorView<'_>)>::new(), None);
    std::fs::write(&file, other.unwrap()).unwrap();
    assert!(resume().contains("another program"), "{}", resume());
    std::fs::write(&file, &good).unwrap();
    let text = config.to_toml().replace("latent = 2", "latent = 3");
    std::fs::write(run.join("config.toml"), text).unwrap();
    assert!(resume().contains("was that changed?"), "{}", resume());
    std::fs::remove_file(&file).unwrap();
    assert!(resume().contains("checkpoint.safetensors"), "{}", resume());
}

#[test]
fn data_that_the_settings_do_not_mean_are_errors() {
    let config = Config::parse("test", IMAGES).unwrap();
    let error = Trainer::new(config.clone(), Data::Ring).unwrap_err().to_string();
    assert!(error.contains("data.kind"), "{error}");
    let small = Pictures::new(1, 8, vec![0; 64]).unwrap();
    let error = Trainer::new(config, Data::Images(small)).unwrap_err().to_string();
    assert!(error.contains("side of 8"), "{error}");
}
