"""Model ⇄ disk: our model directory, and the original's options.json + HDF5.

    model_dir.py  config.json + model.safetensors + vocab.txt + README.md, and their class
    model_files.py  what these files must hold
    card.py       the README.md of a model directory
    locate.py     what the user typed -> a model directory
    bilm_tf.py    the original's two files, read and written bit for bit; options are explained
                  in bilm_tf_options.py, datasets in bilm_tf_layout.py
    convert.py    one into the other, with a parity report

Nothing here runs code from a file: JSON, safetensors and HDF5 only.
"""
