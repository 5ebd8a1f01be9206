namespace precast::data {}
