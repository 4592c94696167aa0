use super::*;

const SCENARIO: &str =
    "transfer.size = \"1 MB\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";

fn folder(claims: &str, has_scenario: bool) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("002-cmt").join("cmt-one");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("claims.toml"), claims).unwrap();
    if has_scenario {
        std::fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    }
    (root, folder)
}

#[test]
fn experiments_are_selected_by_name_paper_and_pattern() {
    let header = "title = 't'\nfigure = 'Fig. 1'\nfigures = ['cmt-fig1a', 'cmt-fig1b']";
    let (root, _) = folder(header, true);
    let all = Experiments::find(Some(root.path())).unwrap();
    for name in ["all", "002", "002-cmt", "cmt-one", "cmt-fig1a", "cmt-*", "cmt-fig1?"] {
        let found = all.select(&[name.to_owned(), "cmt-one".to_owned()]).unwrap();
        assert_eq!(found.len(), 1, "{name}");
    }
    let error = all.select(&["cmt-fig1c".to_owned()]).unwrap_err().to_string();
    assert!(
        error.contains("no experiment is named `cmt-fig1c`; the nearest is `cmt-fig1"),
        "{error}"
    );
}

#[test]
fn the_reference_names_further_variants() {
    let (_root, folder) = folder("title = 't'\nfigure = 'f'", true);
    let reference = "variant,field,mean,std,n,source\n,t,1,1,9,x\npackaged-2mtu,t,1,1,9,x\n";
    std::fs::write(folder.join("reference.csv"), reference).unwrap();
    let error = Experiment::load(&folder).unwrap_err().to_string();
    let expected =
        "reference.csv: the variant `packaged-2mtu` has no scenario; write packaged-2mtu.toml";
    assert!(error.contains(expected), "{error}");
    for name in ["packaged.toml", "packaged-2mtu.toml", "notes.toml"] {
        std::fs::write(folder.join(name), SCENARIO).unwrap();
    }
    let own = Experiment::load(&folder).unwrap();
    let names: Vec<_> = own.variants().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["scenario", "packaged", "packaged-2mtu"]);
}

#[test]
fn releases_of_the_papers_simulator_are_variants_with_and_without_results_of_it() {
    let (_root, folder) = folder("title = 't'\nfigure = 'f'", true);
    let reference = "variant,field,mean,std,n,source\nrelease-3.6,t,1,1,9,x\n";
    std::fs::write(folder.join("reference.csv"), reference).unwrap();
    for name in ["release-3.7.toml", "release-3.6.toml", "release-notes.md"] {
        std::fs::write(folder.join(name), SCENARIO).unwrap();
    }
    let own = Experiment::load(&folder).unwrap();
    let names: Vec<_> = own.variants().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["scenario", "release-3.6", "release-3.7"]);
}

#[test]
fn errors_name_file_and_line() {
    let header = "title = 't'\nfigure = 'f'\n";
    let claim = "[[claim]]\nid = 'c'\nsays = 's'\nwhere = 'w'\nfield = 'x'\nmeasure = 'mean'\nat_least = 1\n";
    for (text, has_scenario, error) in [
        ("title = 't'\n".to_owned(), true, "missing field `figure`"),
        (format!("{header}titel = 3\n"), true, "claims.toml:3: unknown field `titel`"),
        (
            format!("{header}[[placebo]]\nid = 'none'\nsays = 's'\nset = {{ a = 1 }}\n"),
            true,
            "claims.toml:3: placebo `none`: the id is letters, digits and `-`, and not `none`",
        ),
        (
            format!("{header}[[placebo]]\nid = 'off'\nsays = 's'\nset = {{}}\n"),
            true,
            "placebo `off`: it sets nothing",
        ),
        (
            format!("{header}runs = 'x'\n[[placebo]]\nid = 'off'\nsays = 's'\nset = {{ a = 1 }}\n"),
            true,
            "the runs are those of `x`: write the placebo there",
        ),
        (
            format!("{header}{claim}placebo = 'off'\n"),
            true,
            "claims.toml:3: claim `c`: no [[placebo]] has the id `off`",
        ),
        (
            format!("{header}{claim}").replace("'mean'", "'men'"),
            true,
            "claims.toml:3: claim `c`: `measure = \"men\"`",
        ),
        (format!("{header}\n{claim}{claim}"), true, "claims.toml:11: a second claim `c`"),
        (format!("{header}[[derive]]\nname = 'd'"), true, "claims.toml:3: a derived column needs"),
        (
            format!("{header}samples = {{ every = '1 ns', most = 1000000000000 }}\n"),
            true,
            "claims.toml:3: `most = 1000000000000`: more than 1000000 samples",
        ),
        (
            format!("{header}{}", "[[derive]]\nname = 'd'\nsum = ['a']\n".repeat(2)),
            true,
            "claims.toml: a second derived column `d`",
        ),
        (
            format!("{header}[[derive]]\nname = 'd'\nsum = ['d']"),
            true,
            "claims.toml: `d` is computed before `d`, which it reads",
        ),
        (
            format!("{header}samples = {{ every = '0 s' }}\n"),
            true,
            "claims.toml:3: samples every 0 s",
        ),
        (header.to_owned(), false, "no scenario.toml"),
        (format!("{header}kind = 'overlay'\n"), true, "no overlay.toml"),
        (format!("{header}runs = 'cmt-two'\n"), false, "names no experiment with runs"),
    ] {
        let (root, _) = folder(&text, has_scenario);
        let found = Experiments::find(Some(root.path()));
        let found = found.map(|_| ()).map_err(|e| e.to_string());
        assert!(found.as_ref().is_err_and(|f| f.contains(error)), "{text}: {found:?}");
    }
}

#[test]
fn the_embedded_experiments_can_be_read() {
    let (root, _unpacked) = unpack().unwrap();
    let own = Experiments::find(Some(&root)).unwrap();
    assert!(own.get("cmt-fig12a").is_some());
}
